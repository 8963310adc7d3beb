from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.records.evidence import gather
from depthpde.records.index.index import Index
from depthpde.records.record import RESULT, STATUS, State, read_grid, write_grid
from depthpde.records.results import read_results
from depthpde.report.tables import paired_table
from depthpde.web.board import MOST_SHOWN, BoardView, draw_board
from depthpde.web.filters import BoardFilter
from depthpde.web.pages import Pages
from depthpde.web.states import STATE_BADGES, run_name


def board_of(index: Index, **chosen: str) -> BoardView:
    seen = index.look(60.0)
    return draw_board(seen, index.all_grids(), BoardFilter.read(chosen))


def test_the_board_shows_each_run_once_and_counts_by_state(results: Path) -> None:
    cells = read_grid(results / "grids" / "placement.json").cells
    now = time.time()
    states = [
        {"state": "running", "update": 5, "updates": 9, "heartbeat": now},
        {"state": "running", "heartbeat": now - 500},
        {"state": "failed", "error": "no memory"},
        {"state": "interrupted"},
    ]
    for cell, status in zip(cells, states, strict=False):
        (results / "runs" / cell.run / RESULT).unlink()
        write_json(results / "runs" / cell.run / STATUS, status)
    shutil.rmtree(results / "runs" / cells[4].run)
    first = results / "runs" / cells[0].run / STATUS
    write_json(first, states[0] | {"update": 1, "heartbeat": now - 75})
    index = Index(results)
    index.look()
    write_json(first, states[0])  # four updates took 75 seconds, four are left
    board = board_of(index)
    counts = dict(board.counts)
    found = {state: counts[badge] for state, badge in STATE_BADGES.items() if badge in counts}
    assert found == {
        State.RUNNING: 1, State.DONE: 31, State.FAILED: 1, State.LOST: 1, State.INTERRUPTED: 1,
        State.PENDING: 1,
    }  # fmt: skip
    (panel,) = board.panels
    chips = [chip for row in panel.rows for square in row.squares for chip in square.chips]
    assert sorted(chip.run for chip in chips) == sorted(cell.run for cell in cells)
    assert [chip.run for chip in chips if not chip.known] == [cells[4].run]
    (running,) = board.running
    assert (running.run, running.update, running.updates) == (cells[0].run, 5, 9)
    assert (running.name, running.left) == ("listops-mini · baseline · seed 0", "1 min 15 s")
    assert [error for _, _, error in board.failures] == ["no memory"]


def test_a_cells_number_is_the_reports(results: Path) -> None:
    board = board_of(Index(results))
    found = read_results(results)
    table = paired_table(gather(found.grids["placement"], found.records))
    (panel,) = board.panels
    assert [square.mean for square in panel.rows[0].squares] == [
        entry.text for entry in table.rows[0][1:3]
    ]


def test_runs_are_called_by_their_grid_and_else_by_themselves(results: Path) -> None:
    cells = read_grid(results / "grids" / "placement.json").cells
    run = next(cell.run for cell in cells if cell.variant == "depthwise conv")
    named = run_name(Index(results).look(60.0), run)
    (results / "grids" / "placement.json").unlink()
    assert named == "listops-mini · depthwise conv · seed 0"
    assert "after embedding depthwise conv" in run_name(Index(results).look(60.0), run)


def test_many_problems_are_counted_and_not_all_told(tmp_path: Path) -> None:
    for number in range(MOST_SHOWN + 7):
        (tmp_path / "runs" / f"{number:016x}").mkdir(parents=True)
    board = board_of(Index(tmp_path))
    assert len(board.broken) == MOST_SHOWN + 7
    assert board.not_shown == 7
    drawn = Pages("folder").piece("sections.html", "problems", board)
    assert drawn.count("not a record") == MOST_SHOWN
    assert "and 7 more" in drawn


def test_runs_are_listed_by_state_task_and_text_those_unfinished_first(results: Path) -> None:
    cells = read_grid(results / "grids" / "placement.json").cells
    (results / "runs" / cells[7].run / RESULT).unlink()
    write_json(results / "runs" / cells[7].run / STATUS, {"state": "failed", "error": "no memory"})
    index = Index(results)
    failed = board_of(index, state="failed").listing
    assert failed is not None
    assert [(each.run, each.error) for each in failed.runs] == [(cells[7].run, "no memory")]
    found = board_of(index, q="memory").listing
    assert found is not None
    assert found.runs == failed.runs
    some = board_of(index, q="depthwise listops", task="listops-mini").listing
    assert some is not None
    assert some.total == 6
    every = board_of(index, sort="best").listing
    assert every is not None
    assert every.total == 36
    reached = [float(each.accuracy) for each in every.runs if each.accuracy]
    assert reached == sorted(reached, reverse=True)
    assert all(each.unchecked for each in every.runs if each.accuracy), "made without checksums"
    first = board_of(index, q="seed").listing
    assert first is not None
    assert first.runs[0].run == cells[7].run, "unfinished first"


def test_a_list_has_pages(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depthpde.web.board.A_PAGE", 10)
    index = Index(results)
    pages = [board_of(index, sort="newest", page=str(k)).listing for k in (1, 2, 3, 4, 99)]
    assert [len(each.runs) for each in pages if each] == [10, 10, 10, 6, 6]
    assert {run.run for each in pages if each for run in each.runs} == set(index.snapshot.entries)


def test_what_ran_last_comes_first_and_more_grids_are_a_line_each(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("depthpde.web.board.MOST_SIGNS", 20)
    grid = read_grid(results / "grids" / "placement.json")
    last = grid.cells[-1].run
    newer = time.time() + 5
    os.utime(results / "runs" / last / RESULT, (newer, newer))
    for name, cells in (("early", grid.cells[:6]), ("zlast", grid.cells[-6:])):
        write_grid(results, type(grid)(name, "?", "baseline", cells, {}))
    board = board_of(Index(results))
    assert [each.name for each in board.panels] == ["placement"]
    assert [(each.name, each.finished, each.total) for each in board.lines] == [
        ("zlast", 6, 6), ("early", 6, 6),
    ]  # fmt: skip
    (alone,) = board_of(Index(results), grid="early").panels
    assert alone.name == "early"


def test_a_cell_of_many_seeds_counts_them_and_signs_what_is_unfinished(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("depthpde.web.board.MOST_SEEDS", 4)
    cells = read_grid(results / "grids" / "placement.json").cells
    (results / "runs" / cells[0].run / RESULT).unlink()
    write_json(results / "runs" / cells[0].run / STATUS, {"state": "failed"})
    (panel,) = board_of(Index(results)).panels
    square = panel.rows[0].squares[0]
    assert [chip.run for chip in square.chips] == [cells[0].run]
    assert square.counts == ((STATE_BADGES[State.DONE], 5),)


def test_variants_have_pages(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depthpde.web.board.MOST_ROWS", 2)
    index = Index(results)
    (first,), (second,) = (board_of(index, page=page).panels for page in ("1", "2"))
    assert (len(first.rows), first.hidden) == (2, 1)
    assert (len(second.rows), second.hidden) == (1, 2)

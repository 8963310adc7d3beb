from __future__ import annotations

import shutil
import time
from pathlib import Path

from depthpde.files import write_json
from depthpde.records.evidence import gather
from depthpde.records.index.index import Index
from depthpde.records.record import RESULT, STATUS, State, read_grid
from depthpde.records.results import read_results
from depthpde.report.tables import paired_table
from depthpde.web.board import MOST_SHOWN, BoardView, draw_board
from depthpde.web.pages import Pages
from depthpde.web.states import STATE_BADGES, run_name


def board_of(index: Index) -> BoardView:
    return draw_board(index.look(60.0), index.all_grids().values())


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

"""The board as a person sees it: on a terminal, in a log, as JSON."""

from __future__ import annotations

import io
import json

import pytest

from depthpde.records.record import Cell, Grid
from depthpde.sweeps.board import TerminalBoard, table, to_dict
from depthpde.sweeps.status import cell_statuses
from sweeps.test_status import ID, put, running

CELLS = tuple(
    Cell("listops-mini", variant, seed, ID(2 * seed + number))
    for seed in (0, 1)
    for number, variant in enumerate(("baseline", "after embedding"))
)
GRID = Grid("question", "Does it?", "baseline", CELLS, {"baseline": {}, "after embedding": {}})


@pytest.fixture
def results(tmp_path):
    put(tmp_path, 0, result={})
    put(tmp_path, 1, status=running())
    put(tmp_path, 2, status={"state": "failed", "error": "OSError: full"})
    return tmp_path


def test_the_table_shows_every_cell_and_why_some_failed(results):
    assert table(GRID, cell_statuses(GRID, results)).splitlines() == [
        "question · 1 of 4 recorded · 1 running · 1 failed · about 2 min 40 s left",
        "listops-mini       seed 0   seed 1",
        "baseline             41.3   failed",
        "after embedding      25 %        ·",
        "failed: listops-mini · baseline · seed 1: OSError: full",
    ]


def test_many_failures_are_counted_and_the_first_five_told(tmp_path):
    cells = tuple(Cell("text-mini", "baseline", seed, ID(seed)) for seed in range(8))
    for seed in range(8):
        put(tmp_path, seed, status={"state": "failed", "error": f"error {seed}"})
    grid = Grid("question", "", "baseline", cells, {"baseline": {}})
    lines = table(grid, cell_statuses(grid, tmp_path)).splitlines()
    assert lines[-2:] == ["failed: text-mini · baseline · seed 4: error 4", "and 3 more failed"]


def test_scripts_get_the_same_as_plain_values(results):
    output = json.loads(json.dumps(to_dict(GRID, cell_statuses(GRID, results))))
    assert output["states"] == {"running": 1, "failed": 1, "done": 1, "pending": 1}
    assert (output["runs"], output["finished"], output["baseline"]) == (4, 1, "baseline")
    assert output["cells"][0]["accuracy"] == pytest.approx(41.26)
    assert output["cells"][2]["error"] == "OSError: full"


def test_a_log_gets_one_line_for_each_change_and_none_without(results):
    stream = io.StringIO()
    with TerminalBoard(GRID, results, stream=stream, every=0.0) as board:
        board.look()
        assert stream.getvalue() == ""
        put(results, 3, result={"seconds": 2.0})
        board.look()
        board.look()
    assert stream.getvalue().count("\n") == 1
    line = "listops-mini · after embedding · seed 1: done 41.3 % · question · 2 of 4 recorded"
    assert stream.getvalue().startswith(line)


def test_the_folder_is_read_no_more_often_than_asked(results):
    stream = io.StringIO()
    with TerminalBoard(GRID, results, stream=stream, every=1000.0) as board:
        board.look()
        put(results, 3, result={})
        board.look()
        assert stream.getvalue() == ""
    assert "done 41.3 %" in stream.getvalue()  # the last look is always taken


def test_a_terminal_gets_the_table(results):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with TerminalBoard(GRID, results, stream=stream) as board:
        board.look()
    assert "after embedding      25 %" in stream.getvalue()

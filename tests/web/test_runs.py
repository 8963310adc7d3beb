from __future__ import annotations

import json
from pathlib import Path

import pytest

from depthpde.records.index.index import Index
from depthpde.records.record import METRICS, RESULT, read_grid
from depthpde.web.runs import Curves, RunView, draw_run


def view_of(results: Path, run: str) -> RunView:
    index = Index(results)
    snapshot = index.look()
    record = index.find(run)
    assert record is not None
    return draw_run(index, snapshot, record)


def test_a_finished_run_tells_its_result_and_the_lines_that_need_no_learning(
    shared_results: Path,
) -> None:
    run = read_grid(shared_results / "grids" / "placement.json").cells[0].run
    view = view_of(shared_results, run)
    result = json.loads((shared_results / "runs" / run / RESULT).read_text())
    facts = dict(view.result)
    assert facts["test accuracy"] == f"{result['test']['accuracy']:.2f} %"
    assert facts["without learning: root operator"] == "33.3 %"
    assert view.trivial == ({"name": "majority", "y": 15.5}, {"name": "root operator", "y": 33.3})
    assert view.grids == ("placement",)
    assert view.has_probe
    assert dict(view.environment)["versions"] == "depthpde 0.1, python 3.11.2, torch 2.13.0"
    assert json.loads(view.config)["task"] == "listops-mini"


def test_learned_ratios_are_called_by_their_place(results: Path) -> None:
    folder = sorted((results / "runs").iterdir())[0]
    ratios = {"encoder.blocks.1.placed.layers.after_ffn.layer.free": 0.1, "odd": 0.2}
    lines = [
        {"kind": "validation", "update": 1, "ratios": ratios},
        {"kind": "validation", "update": 2, "ratios": None},
        {"kind": "something new"},
    ]
    (folder / METRICS).write_text("".join(json.dumps(each) + "\n" for each in lines))
    index = Index(results)
    index.look()
    _, event = Curves(index, folder.name).look()
    assert [each["ratios"] for each in event.data] == [
        {"block 2 · after ffn": 0.1, "odd": 0.2},
        {},
    ]


@pytest.mark.parametrize(
    ("grid", "known"),
    [("placement", "placement"), ("placement.tuning", "placement"), ("my-own", "FILE.yaml")],
)
def test_a_failed_run_is_tried_again_by_what_asked_for_it(
    results: Path, grid: str, known: str
) -> None:
    """A stage by its experiment, a grid of one's own by its file: no name starts that."""
    path = results / "grids" / "placement.json"
    first = json.loads(path.read_text())
    path.unlink()
    (results / "grids" / f"{grid}.json").write_text(json.dumps(first | {"name": grid}))
    run = first["cells"][0]["run"]
    folder = results / "runs" / run
    (folder / RESULT).unlink()
    (folder / "status.json").write_text(json.dumps({"state": "failed", "error": "no room"}))
    assert view_of(results, run).retry == f"depthpde sweep {known} --out results --retry-failed"

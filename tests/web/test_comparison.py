from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from depthpde.records.evidence import gather
from depthpde.records.index.index import TURNS, Index
from depthpde.records.protocols.protocol import Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.sealing import seal
from depthpde.records.record import RESULT, read_grid, write_grid
from depthpde.records.results import read_results
from depthpde.report.tables import paired_table
from depthpde.web.comparison import Comparisons, ComparisonView


def compare(results: Path, *choice: object) -> ComparisonView:
    index = Index(results)
    index.look(60.0)
    view = Comparisons(index).draw(*choice)  # type: ignore[arg-type]
    assert view is not None
    return view


def test_every_choice_gives_the_table_of_the_report(shared_results: Path) -> None:
    found = read_results(shared_results)
    evidence = gather(found.grids["placement"], found.records)
    assert compare(shared_results, "placement", [], []).table == paired_table(evidence)
    for tasks, variants in ((["text-mini"], []), ([], ["depthwise conv"])):
        part = evidence.select(
            tasks=tasks or None, variants=[evidence.baseline, *variants] if variants else None
        )
        assert compare(shared_results, "placement", tasks, variants).table == paired_table(part)


def test_names_that_nobody_knows_are_passed_over(shared_results: Path) -> None:
    whole = compare(shared_results, "placement", [], [])
    assert compare(shared_results, "no such grid", ["no such task"], ["x"]) == whole
    assert all(each.chosen for each in (*whole.tasks, *whole.variants))


def test_the_figure_has_a_row_for_each_chosen_variant(shared_results: Path) -> None:
    view = compare(shared_results, "placement", [], ["after_embedding"])
    assert "after embedding" in view.forest
    assert "depthwise conv" not in view.forest
    assert [each.value for each in view.variants if each.chosen] == ["after_embedding"]


def test_without_a_finished_run_it_says_so(results: Path) -> None:
    for folder in (results / "runs").iterdir():
        (folder / RESULT).unlink()
    view = compare(results, "placement", [], [])
    assert view.table is None
    assert view.refusal == "None of the chosen runs has finished yet."


def test_an_empty_folder_has_nothing_to_compare(tmp_path: Path) -> None:
    index = Index(tmp_path)
    assert Comparisons(index).draw("", [], []) is None


def test_it_opens_on_the_grid_that_ran_last(results: Path) -> None:
    grid = read_grid(results / "grids" / "placement.json")
    for name, cells in (("a", grid.cells[:12]), ("b", grid.cells[-12:])):
        write_grid(results, type(grid)(name, "?", grid.cells[0].variant, cells, {}))
    (results / "grids" / "placement.json").unlink()
    for run, name in ((grid.cells[0].run, "a"), (grid.cells[-1].run, "b")):
        later = time.time() + 60 + ord(name)
        os.utime(results / "runs" / run / RESULT, (later, later))
        assert compare(results, "", [], []).name == name


def test_a_comparison_is_kept_until_one_of_its_runs_changes(results: Path) -> None:
    index = Index(results)
    index.look(60.0)
    comparisons = Comparisons(index)
    first = comparisons.draw("placement", [], [])
    assert comparisons.draw("placement", [], []) is first
    run = read_grid(results / "grids" / "placement.json").cells[0].run
    path = results / "runs" / run / RESULT
    path.write_text(path.read_text().replace('"accuracy": 3', '"accuracy": 4', 1))
    for _ in range(TURNS):
        index.look(60.0)
    again = comparisons.draw("placement", [], [])
    assert first is not None
    assert again is not None
    assert again.table != first.table


def test_the_curves_of_what_is_compared_are_drawn(shared_results: Path) -> None:
    view = compare(shared_results, "placement", ["text-mini"], ["depthwise conv"])
    (curve,) = view.curves
    assert "depthwise conv" in curve
    assert "after embedding" not in curve
    assert view.drawn == ("baseline", "depthwise conv")


@pytest.mark.parametrize(("first", "shown"), [(4, 4), (7, None)])
def test_before_a_look_nothing_is_compared_and_behind_it_no_more_than_it_has(
    results: Path, first: int, shown: int | None
) -> None:
    grid = read_grid(results / "grids" / "placement.json")
    protocol = StudyProtocol(
        name=grid.name, question="?", tuning_seeds=(200,), test_seeds=tuple(range(8)),
        rates=(1e-3,), endpoints=("accuracy",),
        looks=(Look(seeds=first, p=0.01), Look(seeds=8, p=0.04)),
        contrasts=(
            PlannedContrast(variant="after_embedding", against="baseline", endpoint="accuracy"),
        ),
    )  # fmt: skip
    seal(results, protocol)
    for path in results.glob("runs/*/config.json"):
        values = json.loads(path.read_text())
        values["config"]["study"] = protocol.digest
        path.write_text(json.dumps(values))
    view = compare(results, grid.name, [], [])
    assert view.table is not None
    assert bool(view.forest) is bool(view.curves) is (shown is not None)
    assert (f"{shown} paired seed" in view.table.title) is (shown is not None)
    waits = f"nothing is compared before the first look, at {first} seeds"
    assert (waits in view.table.notes) is (shown is None)

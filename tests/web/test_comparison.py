from __future__ import annotations

from pathlib import Path

from depthpde.records.evidence import gather
from depthpde.records.index.index import Index
from depthpde.records.record import RESULT
from depthpde.records.results import read_results
from depthpde.report.tables import paired_table
from depthpde.web.comparison import ComparisonView, draw_comparison


def compare(results: Path, *choice: object) -> ComparisonView:
    index = Index(results)
    index.look(60.0)
    view = draw_comparison(index, *choice)  # type: ignore[arg-type]
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
    assert draw_comparison(index, "", [], []) is None

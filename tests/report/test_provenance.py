import json
from dataclasses import replace

from depthpde.records.evidence import gather
from depthpde.records.results import read_results
from depthpde.report.provenance import list_environments, run_rows
from depthpde.report.variant_section import cell_anchor


def read(results):
    found = read_results(results)
    return found, gather(found.grids["placement"], found.records)


def test_every_cell_has_one_anchor_on_its_first_run(shared_results):
    found, evidence = read(shared_results)
    rows = run_rows(evidence, list_environments(found.records))
    assert len(rows) == len(found.records) == 60
    anchors = [row.anchor for row in rows if row.anchor]
    assert anchors == [
        cell_anchor(evidence, task, variant)
        for task in evidence.tasks
        for variant in evidence.variants
    ]
    assert {row.run for row in rows} == set(found.records)
    assert rows[0].data == "abababab"


def test_a_run_without_a_result_stands_at_its_place_with_its_state(results):
    _, evidence = read(results)
    gone = evidence.runs["listops-mini", "baseline"][0]
    (gone.folder / "result.json").unlink()
    (gone.folder / "status.json").write_text('{"state": "failed", "error": "boom"}')
    found, evidence = read(results)
    rows = run_rows(evidence, list_environments(found.records))
    row = next(each for each in rows if each.run == gone.id)
    assert (row.state, row.accuracy, row.seed) == ("failed", "", 0)
    assert rows[0].anchor == cell_anchor(evidence, "listops-mini", "baseline")


def test_environments_are_named_once_each_and_an_unknown_one_says_so(results):
    first = next((results / "runs").iterdir())
    (first / "environment.json").write_text(json.dumps({"dirty": True}))
    found, evidence = read(results)
    environments = list_environments(found.records)
    assert len(environments) == 2
    words = " | ".join(environments.values())
    assert "commit 0123456789ab; depthpde 0.1, python 3.11.2, torch 2.13.0; A CPU" in words
    assert "commit unknown with changes; unknown versions; unknown machine" in words
    named = {row.environment for row in run_rows(evidence, environments)}
    assert named == set(environments)


def test_a_record_that_is_added_renames_no_environment(results):
    found, _ = read(results)
    before = list_environments(found.records)
    record = next(iter(found.records.values()))
    newer = replace(record, environment={"commit": "0" * 40})
    after = list_environments({**found.records, "newer": newer})
    assert len(after) == len(before) + 1
    assert before.items() <= after.items()

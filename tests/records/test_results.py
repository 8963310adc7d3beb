import json
import shutil
import sys

import pytest

from depthpde.records.evidence import gather
from depthpde.records.protocols.sealing import seal
from depthpde.records.record import Cell, Grid, write_grid
from depthpde.records.results import _written, read_results
from depthpde.records.ungrouped import UNGROUPED
from records.protocols.test_sealing import PROTOCOL
from report import synthesis


def test_an_empty_folder_says_how_to_make_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must be a folder with runs.*depthpde demo"):
        read_results(tmp_path)


def test_broken_records_grids_and_findings_are_told_and_the_rest_is_read(results):
    runs = sorted((results / "runs").iterdir())
    (runs[0] / "result.json").write_text('{"format": 1, "sta')
    config = json.loads((runs[1] / "config.json").read_text())
    (runs[1] / "config.json").write_text(json.dumps(config | {"format": 99}))
    (runs[2] / "config.json").unlink()
    (results / "grids" / "half.json").write_text('{"format": 1, "name": "ha')
    (results / "findings" / "odd.json").write_text('{"rows": [{"claim": "x"}]}')
    found = read_results(results)
    reasons = {each.path.name: each.reason for each in found.broken}
    assert set(reasons) == {*(run.name for run in runs[:3]), "half.json", "odd.json"}
    assert "not written whole" in reasons[runs[0].name]
    assert "must be of format 1, got 99" in reasons[runs[1].name]
    assert "config.json is missing" in reasons[runs[2].name]
    assert "findings must be of format 1" in reasons["odd.json"]
    assert len(found.records) == len(runs) - 3


def test_protocols_are_read_with_the_grids_and_an_edited_one_is_told(results):
    seal(results, PROTOCOL)
    assert read_results(results).protocols == {PROTOCOL.name: PROTOCOL}
    path = results / "protocols" / f"{PROTOCOL.name}.json"
    path.write_text(path.read_text().replace("0.05", "0.04"))
    found = read_results(results)
    assert found.protocols == {}
    (broken,) = found.broken
    assert broken.path.as_posix() == f"protocols/{PROTOCOL.name}.json"
    assert "it was edited" in broken.reason


def test_findings_are_read_with_their_numbers(shared_results):
    (found,) = read_results(shared_results).findings
    first = found.claims[0]
    assert (found.name, first.verdict, first.n, first.interval) == (
        "coupling", "supported", 30, (1.6, 2.0),
    )  # fmt: skip


def test_runs_without_a_grid_are_a_grid_of_their_own(tmp_path):
    synthesis.write_run(tmp_path, "text-mini", "after_ffn", 0)
    synthesis.write_run(tmp_path, "text-mini", "baseline", 0)
    grid = read_results(tmp_path).grids[UNGROUPED]
    assert grid.baseline == "baseline"
    assert [(cell.variant, cell.seed) for cell in grid.cells] == [("baseline", 0), ("after_ffn", 0)]


def test_runs_of_other_settings_never_share_a_cell(tmp_path):
    for seed in range(3):
        synthesis.write_run(tmp_path, "text-mini", "baseline", seed)
        synthesis.write_run(tmp_path, "text-mini", "after_ffn", seed)
    synthesis.write_run(tmp_path, "text-mini", "baseline", 0, updates=400)
    found = read_results(tmp_path)
    cells = found.grids[UNGROUPED].cells
    assert len(cells) == len({(each.task, each.variant, each.seed) for each in cells}) == 7
    assert {each.variant for each in cells} == {"baseline", "after_ffn", "baseline, updates=400"}


def test_without_a_baseline_of_the_same_settings_nothing_is_compared(tmp_path):
    synthesis.write_run(tmp_path, "text-mini", "after_ffn", 0)
    synthesis.write_run(tmp_path, "text-mini", "in_heads", 0)
    found = read_results(tmp_path)
    evidence = gather(found.grids[UNGROUPED], found.records)
    assert evidence.pairs("text-mini", "after_ffn") == {}
    assert "after_ffn" in {each.variant for each in found.grids[UNGROUPED].cells}


def test_a_grid_that_names_other_runs_for_a_cell_is_told_and_the_first_counts(tmp_path):
    for name, updates in (("one", 800), ("two", 400)):
        run = synthesis.write_run(tmp_path / name, "text-mini", "baseline", 0, updates=updates)
        cells = (Cell("text-mini", "baseline", 0, run),)
        write_grid(tmp_path / name, Grid("placement", "?", "baseline", cells, {}))
    found = read_results([tmp_path / "one", tmp_path / "two"])
    (cell,) = found.grids["placement"].cells
    assert (tmp_path / "one" / "runs" / cell.run).is_dir()
    (printed,) = found.broken
    assert "names other runs for 1 cells of placement" in printed.reason


def test_a_folder_that_is_not_there_is_never_left_out_silently(shared_results, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must be folders with runs, got .*othr, which"):
        read_results([shared_results, tmp_path / "othr"])


def test_folders_are_read_together_and_a_finished_run_wins(shared_results, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(shared_results, other)
    gone = next((other / "runs").iterdir())
    (gone / "result.json").unlink()
    synthesis.write_run(other, "image-mini", "baseline", 0)
    both = read_results([other, shared_results])
    assert both.records[gone.name].result is not None
    assert set(both.grids) == {"placement", UNGROUPED}
    whole = read_results(shared_results).grids["placement"]
    assert set(both.grids["placement"].cells) == set(whole.cells)
    assert both.grids[UNGROUPED].cells[0].task == "image-mini"


def test_rows_tell_of_every_run_what_it_is_and_reached(results):
    found = read_results(str(results))
    rows = {row["run"]: row for row in found.rows()}
    assert rows.keys() == found.records.keys()
    for cell in found.grids["placement"].cells:
        row, record = rows[cell.run], found.records[cell.run]
        assert (row["grid"], row["variant"], row["task"]) == ("placement", cell.variant, cell.task)
        assert (row["accuracy"], row["state"]) == (record.accuracy, record.state.value)


def test_rows_become_a_frame_of_pandas_and_of_polars(shared_results):
    found = read_results(shared_results)
    for name, frame in (("pandas", found.to_pandas), ("polars", found.to_polars)):
        pytest.importorskip(name)
        made = frame()
        assert made.shape == (len(found.records), 14)
        assert list(made["run"]) == list(found.records)


def test_a_notebook_shows_the_first_runs_and_escapes_names(results):
    found = read_results(results)
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + min(20, len(found.entries))
    assert f"<p>{len(found.entries):,} runs" in page
    assert _written("<script>") == "&lt;script&gt;"
    assert (_written(None), _written(0.123456)) == ("", "0.1235")


def test_a_frame_without_its_library_says_what_to_install(shared_results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"pip install .depthpde\[tables\]"):
        read_results(shared_results).to_pandas()


def test_a_run_that_vanished_after_the_folder_was_read_is_a_missing_key(results):
    found = read_results(results, stored=False)
    run = next(iter(found.records))
    (results / "runs" / run / "result.json").unlink()
    assert found.records[run].result is not None, "the index still has it"
    fresh = read_results(results)
    shutil.rmtree(results / "runs" / run)
    with pytest.raises(KeyError, match=run):
        fresh.records[run]

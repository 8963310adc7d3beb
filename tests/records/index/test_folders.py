from __future__ import annotations

import os
from pathlib import Path

from depthpde.records.index.folders import ResultsFolder, run_signature


def some_run(results: Path) -> Path:
    return sorted((results / "runs").iterdir())[0]


def test_every_change_of_a_finished_run_changes_its_signature(results: Path) -> None:
    folder = some_run(results)
    seen = {run_signature(str(folder))}
    for number, name in enumerate(("config.json", "status.json", "result.json", "metrics.jsonl")):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        seen.add(run_signature(str(folder)))
        assert len(seen) == number + 2, name
    (folder / "probe.json").write_text("{}")
    assert run_signature(str(folder)) not in seen


def test_a_file_changed_under_its_old_time_is_seen(results: Path) -> None:
    path = some_run(results) / "result.json"
    before, about = run_signature(str(path.parent)), path.stat()
    path.write_bytes(path.read_bytes().replace(b"done", b"dome"))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.stat().st_mtime_ns == about.st_mtime_ns
    assert run_signature(str(path.parent)) != before


def test_the_curve_of_a_run_that_goes_on_is_not_looked_at(results: Path) -> None:
    folder = some_run(results)
    (folder / "result.json").unlink()
    before = run_signature(str(folder))
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write("{}\n")
    assert run_signature(str(folder)) == before


def test_a_known_signature_is_not_asked_of_the_disk_again(results: Path) -> None:
    folder = ResultsFolder(results, outside=False)
    assert {each for _, each in folder.runs(lambda number, run: "known")} == {"known"}
    assert len({each for _, each in folder.runs(lambda number, run: None)}) == 36


def test_a_folder_that_vanished_and_a_plain_file_lead_nowhere(results: Path) -> None:
    folder = ResultsFolder(results, outside=False)
    assert folder.leads_outside(results / "runs" / "gone") == ""
    assert folder.leads_outside(results / "grids" / "placement.json") == ""


def test_a_link_to_itself_lies_nowhere(tmp_path: Path) -> None:
    run = tmp_path / "runs" / ("a" * 16)
    run.mkdir(parents=True)
    (run / "environment.json").symlink_to("environment.json")
    assert "environment.json" in ResultsFolder(tmp_path, outside=False).leads_outside(run)

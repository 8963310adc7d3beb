from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.records.record import CONFIG, RESULT, STATUS, State, read_record, write_grid
from depthpde.records.results import read_results
from depthpde.records.ungrouped import UNGROUPED
from depthpde.web import index as index_file
from depthpde.web.index import TURNS, Index


def some_run(results: Path) -> Path:
    return sorted((results / "runs").iterdir())[0]


def test_holds_every_run_and_grid_of_the_folder(results: Path) -> None:
    snapshot = Index(results).look()
    assert len(snapshot.entries) == 36
    assert list(snapshot.grids) == ["placement"]
    assert not snapshot.broken
    assert snapshot.unread == 0


def test_an_entry_says_what_its_record_says(results: Path) -> None:
    record = read_record(some_run(results))
    entry = Index(results).look().entries[record.id]
    assert (entry.task, entry.label, entry.seed) == (record.task, record.label, record.seed)
    assert (entry.state, entry.accuracy) == (record.state, record.accuracy)
    assert (entry.update, entry.updates) == (800, 800)


def test_reads_again_only_what_changed(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = some_run(results)
    result = (folder / RESULT).read_text()
    (folder / RESULT).unlink()
    write_json(folder / STATUS, {"state": "running", "heartbeat": 0.0})
    known = Index(results)
    first = known.look(patience=60.0)
    read: list[str] = []

    def noting(folder: Path):  # the real reader, listened to
        read.append(folder.name)
        return read_record(folder)

    monkeypatch.setattr(index_file, "read_record", noting)
    assert known.look().version == first.version
    (folder / RESULT).write_text(result)
    second = known.look()
    assert read == [folder.name]
    assert second.version == first.version + 1
    assert second.entries[folder.name].state is State.DONE


def test_a_finished_run_that_changes_after_all_is_seen_within_sixteen_looks(results: Path) -> None:
    known, folder = Index(results), some_run(results)
    known.look(patience=60.0)
    (folder / RESULT).write_text("{")
    broken = [known.look().broken for _ in range(TURNS)][-1]
    assert [each.path.name for each in broken] == [folder.name]


def test_runs_come_and_go(results: Path, tmp_path: Path) -> None:
    known = Index(results)
    folder = some_run(results)
    assert folder.name in known.look().entries
    shutil.move(folder, tmp_path / folder.name)
    assert folder.name not in known.look().entries
    assert known.find(folder.name) is None
    shutil.move(tmp_path / folder.name, folder)
    assert folder.name in known.look().entries


def test_a_running_run_whose_heart_stopped_is_lost_without_any_file_changing(results: Path) -> None:
    folder = some_run(results)
    (folder / RESULT).unlink()
    write_json(folder / STATUS, {"state": "running", "heartbeat": 1000.0})
    entry = Index(results).look().entries[folder.name]
    assert entry.state_at(1010.0) is State.RUNNING
    assert entry.state_at(1121.0) is State.LOST


def test_how_long_a_run_will_take_follows_from_its_pace_since_it_was_seen(results: Path) -> None:
    folder, known = some_run(results), Index(results)
    (folder / RESULT).unlink()

    def left(**status: float) -> float | None:
        write_json(folder / STATUS, {"state": "running", "updates": 100, **status})
        return known.look().entries[folder.name].eta_seconds

    assert left(update=40, heartbeat=1000.0) is None  # resumed at 40: nothing is known yet
    assert left(update=50, heartbeat=1020.0) == 100.0
    assert left(update=60, heartbeat=1040.0) == 80.0
    assert left(update=10, heartbeat=1060.0) is None  # it began anew


def test_a_half_written_record_is_listed_and_hides_no_other(results: Path) -> None:
    folder = some_run(results)
    (folder / CONFIG).write_text((folder / CONFIG).read_text()[:40])
    snapshot = Index(results).look()
    assert len(snapshot.entries) == 35
    (broken,) = snapshot.broken
    assert broken.path == Path("runs") / folder.name
    assert "was not written whole" in broken.reason
    assert str(results) not in broken.reason


def test_a_record_of_another_version_is_listed_as_such(results: Path) -> None:
    folder = some_run(results)
    said = json.loads((folder / CONFIG).read_text()) | {"format": 99}
    write_json(folder / CONFIG, said)
    (broken,) = Index(results).look().broken
    assert "must be of format 1, got 99" in broken.reason


def test_a_grid_that_is_none_is_listed_as_such(results: Path) -> None:
    (results / "grids" / "torn.json").write_text("[]")
    snapshot = Index(results).look()
    assert [each.path.name for each in snapshot.broken] == ["torn.json"]
    assert list(snapshot.grids) == ["placement"]


def test_a_run_that_is_a_link_to_the_outside_is_not_read(results: Path, tmp_path: Path) -> None:
    folder = some_run(results)
    shutil.move(folder, tmp_path / folder.name)
    folder.symlink_to(tmp_path / folder.name)
    snapshot = Index(results).look()
    assert folder.name not in snapshot.entries
    assert "leads outside of the results folder" in snapshot.broken[0].reason


def test_a_run_with_a_file_that_is_a_link_to_the_outside_is_not_read(
    results: Path, tmp_path: Path
) -> None:
    folder = some_run(results)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    known = Index(results)
    known.look()
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").symlink_to(secret)
    assert known.file(folder.name, "metrics.jsonl") is None
    assert known.find(folder.name) is None
    looks = [known.look() for _ in range(TURNS)]
    assert "leads outside of the results folder" in looks[-1].broken[0].reason


def test_a_folder_of_runs_that_leads_outside_is_not_read(results: Path, tmp_path: Path) -> None:
    shutil.move(results / "runs", tmp_path / "elsewhere")
    (results / "runs").symlink_to(tmp_path / "elsewhere")
    seen = Index(results).look()
    assert not seen.entries
    assert "leads outside of the results folder" in seen.broken[0].reason


def test_links_inside_the_folder_are_followed(results: Path) -> None:
    folder = some_run(results)
    shutil.move(folder / "metrics.jsonl", folder / "moved.jsonl")
    (folder / "metrics.jsonl").symlink_to("moved.jsonl")
    known = Index(results)
    assert folder.name in known.look().entries
    assert known.file(folder.name, "metrics.jsonl") is not None


@pytest.mark.parametrize("name", ["../..", "..", ".", "", "/etc", "runs", "\0", "a/../b"])
def test_no_name_but_that_of_a_known_run_is_found(results: Path, name: str) -> None:
    known = Index(results)
    known.look()
    assert known.find(name) is None
    assert known.file(name, "passwd") is None


def test_what_takes_longer_than_its_patience_is_left_to_the_next_look(results: Path) -> None:
    known = Index(results)
    first = known.look(patience=0.0)
    assert 0 < first.unread < 37
    looks = 1
    while known.look(patience=0.0).unread:
        looks += 1
    assert len(known.look().entries) == 36
    assert looks > 10


def test_runs_of_no_grid_stand_in_the_grid_that_a_report_gives_them(results: Path) -> None:
    (results / "grids" / "placement.json").unlink()
    ours = Index(results).look().all_grids()
    assert ours == read_results(results).grids
    assert list(ours) == [UNGROUPED]


def test_a_record_is_read_once_for_comparisons_until_it_changes(results: Path) -> None:
    known, folder = Index(results), some_run(results)
    known.look()
    (first,) = known.records([folder.name]).values()
    (again,) = known.records([folder.name]).values()
    assert again is first
    write_json(folder / RESULT, dict(first.result or {}) | {"seconds": 1.0})
    for _ in range(TURNS):
        known.look()
    (changed,) = known.records([folder.name]).values()
    assert changed.result is not None
    assert changed.result["seconds"] == 1.0
    assert known.records(["nobody"]) == {}


def test_looking_writes_nothing(results: Path) -> None:
    def state() -> dict[str, int]:
        return {str(each): each.stat().st_mtime_ns for each in sorted(results.rglob("*"))}

    before = state()
    known = Index(results)
    known.look()
    known.records(known.look().entries)
    assert state() == before


def test_a_grid_written_later_is_found(results: Path) -> None:
    known = Index(results)
    grid = known.look().grids["placement"]
    write_grid(results, type(grid)("second", "?", "baseline", grid.cells[:3], {}))
    assert list(known.look().grids) == ["placement", "second"]


@pytest.mark.parametrize(
    "number", ["1e999", "1" + "0" * 400, "1" + "0" * 5000, '"x"', "null", "[]"]
)
@pytest.mark.parametrize("field", ["update", "heartbeat", "error"])
def test_a_status_that_cannot_be_counted_with_breaks_its_own_run_alone(
    results: Path, field: str, number: str
) -> None:
    folder = some_run(results)
    (folder / RESULT).unlink()
    text = f'{{"state": "running", "{field}": {number}}}'
    (folder / STATUS).write_text(text)
    snapshot = Index(results).look()
    if field == "error" and number == '"x"':
        assert len(snapshot.entries) == 36
        return
    assert len(snapshot.entries) == 35
    (broken,) = snapshot.broken
    assert "status.json" in broken.reason

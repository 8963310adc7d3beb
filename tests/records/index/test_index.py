from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from depthpde.files import write_json
from depthpde.records.evidence import gather
from depthpde.records.index import reading as reading_file
from depthpde.records.index.index import TURNS, Index, look_once
from depthpde.records.index.store import FOLDER
from depthpde.records.learning_curves import read_validations, validation_curve
from depthpde.records.probes import read_probe
from depthpde.records.record import CONFIG, RESULT, STATUS, State, read_record, write_grid
from depthpde.records.results import read_results
from depthpde.records.ungrouped import UNGROUPED
from depthpde.report.tables import paired_table


def some_run(results: Path) -> Path:
    return sorted((results / "runs").iterdir())[0]


def test_holds_every_run_and_grid_of_the_folder(results: Path) -> None:
    snapshot = Index(results).look(60.0)
    assert len(snapshot.entries) == 36
    assert list(snapshot.grids) == ["placement"]
    assert not snapshot.broken
    assert snapshot.unread == 0


def test_an_entry_says_what_its_record_says(results: Path) -> None:
    record = read_record(some_run(results))
    entry = Index(results).look(60.0).entries[record.id]
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

    def noting(folder: Path, texts=None):  # the real reader, listened to
        read.append(folder.name)
        return read_record(folder, texts)

    monkeypatch.setattr(reading_file, "read_record", noting)
    assert known.look(60.0).version == first.version
    (folder / RESULT).write_text(result)
    second = known.look(60.0)
    assert read == [folder.name]
    assert second.version == first.version + 1
    assert second.entries[folder.name].state is State.DONE


def test_a_finished_run_that_changes_after_all_is_seen_within_sixteen_looks(results: Path) -> None:
    known, folder = Index(results), some_run(results)
    known.look(patience=60.0)
    (folder / RESULT).write_text("{")
    broken = [known.look(60.0).broken for _ in range(TURNS)][-1]
    assert [each.path.name for each in broken] == [folder.name]


def test_runs_come_and_go(results: Path, tmp_path: Path) -> None:
    known = Index(results)
    folder = some_run(results)
    assert folder.name in known.look(60.0).entries
    shutil.move(folder, tmp_path / folder.name)
    assert folder.name not in known.look(60.0).entries
    assert known.find(folder.name) is None
    shutil.move(tmp_path / folder.name, folder)
    assert folder.name in known.look(60.0).entries


def test_a_running_run_whose_heart_stopped_is_lost_without_any_file_changing(results: Path) -> None:
    folder = some_run(results)
    (folder / RESULT).unlink()
    write_json(folder / STATUS, {"state": "running", "heartbeat": 1000.0})
    entry = Index(results).look(60.0).entries[folder.name]
    assert entry.state_at(1010.0) is State.RUNNING
    assert entry.state_at(1121.0) is State.LOST


def test_how_long_a_run_will_take_follows_from_its_pace_since_it_was_seen(results: Path) -> None:
    folder, known = some_run(results), Index(results)
    (folder / RESULT).unlink()

    def left(**status: float) -> float | None:
        write_json(folder / STATUS, {"state": "running", "updates": 100, **status})
        return known.look(60.0).entries[folder.name].eta_seconds

    assert left(update=40, heartbeat=1000.0) is None  # resumed at 40: nothing is known yet
    assert left(update=50, heartbeat=1020.0) == 100.0
    assert left(update=60, heartbeat=1040.0) == 80.0
    assert left(update=10, heartbeat=1060.0) is None  # it began anew


def test_a_half_written_record_is_listed_and_hides_no_other(results: Path) -> None:
    folder = some_run(results)
    (folder / CONFIG).write_text((folder / CONFIG).read_text()[:40])
    snapshot = Index(results).look(60.0)
    assert len(snapshot.entries) == 35
    (broken,) = snapshot.broken
    assert broken.path == Path("runs") / folder.name
    assert "was not written whole" in broken.reason
    assert str(results) not in broken.reason


def test_a_record_of_another_version_is_listed_as_such(results: Path) -> None:
    folder = some_run(results)
    output = json.loads((folder / CONFIG).read_text()) | {"format": 99}
    write_json(folder / CONFIG, output)
    (broken,) = Index(results).look(60.0).broken
    assert "must be of format 1, got 99" in broken.reason


def test_a_grid_that_is_none_is_listed_as_such(results: Path) -> None:
    (results / "grids" / "torn.json").write_text("[]")
    snapshot = Index(results).look(60.0)
    assert [each.path.name for each in snapshot.broken] == ["torn.json"]
    assert list(snapshot.grids) == ["placement"]


def test_a_run_that_is_a_link_to_the_outside_is_not_read(results: Path, tmp_path: Path) -> None:
    folder = some_run(results)
    shutil.move(folder, tmp_path / folder.name)
    folder.symlink_to(tmp_path / folder.name)
    snapshot = Index(results).look(60.0)
    assert folder.name not in snapshot.entries
    assert "leads outside of the results folder" in snapshot.broken[0].reason


def test_a_run_with_a_file_that_is_a_link_to_the_outside_is_not_read(
    results: Path, tmp_path: Path
) -> None:
    folder = some_run(results)
    secret = tmp_path / "secret"
    secret.write_text("secret")
    known = Index(results)
    known.look(60.0)
    (folder / "metrics.jsonl").unlink()
    (folder / "metrics.jsonl").symlink_to(secret)
    assert known.file(folder.name, "metrics.jsonl") is None
    assert known.find(folder.name) is None
    looks = [known.look(60.0) for _ in range(TURNS)]
    assert "leads outside of the results folder" in looks[-1].broken[0].reason


def test_a_folder_of_runs_that_leads_outside_is_not_read(results: Path, tmp_path: Path) -> None:
    shutil.move(results / "runs", tmp_path / "elsewhere")
    (results / "runs").symlink_to(tmp_path / "elsewhere")
    seen = Index(results).look(60.0)
    assert not seen.entries
    assert "leads outside of the results folder" in seen.broken[0].reason


def test_links_inside_the_folder_are_followed(results: Path) -> None:
    folder = some_run(results)
    shutil.move(folder / "metrics.jsonl", folder / "moved.jsonl")
    (folder / "metrics.jsonl").symlink_to("moved.jsonl")
    known = Index(results)
    assert folder.name in known.look(60.0).entries
    assert known.file(folder.name, "metrics.jsonl") is not None


@pytest.mark.parametrize("name", ["../..", "..", ".", "", "/etc", "runs", "\0", "a/../b"])
def test_no_name_but_that_of_a_known_run_is_found(results: Path, name: str) -> None:
    known = Index(results)
    known.look(60.0)
    assert known.find(name) is None
    assert known.file(name, "passwd") is None


def test_what_takes_longer_than_its_patience_is_left_to_the_next_look(results: Path) -> None:
    known = Index(results)
    first = known.look(patience=0.0)
    assert 0 < first.unread < 37
    looks = 1
    while known.look(patience=0.0).unread:
        looks += 1
    assert len(known.look(60.0).entries) == 36
    assert looks > 10


def test_runs_of_no_grid_stand_in_the_grid_that_a_report_gives_them(results: Path) -> None:
    (results / "grids" / "placement.json").unlink()
    known = Index(results)
    known.look(60.0)
    ours = known.all_grids()
    assert ours == read_results(results).grids
    assert list(ours) == [UNGROUPED]


def test_a_record_of_the_index_is_that_of_its_files(results: Path) -> None:
    known, folder = Index(results), some_run(results)
    known.look(60.0)
    for run in known.snapshot.entries:
        plain, kept = read_record(results / "runs" / run), known.record(run)
        assert kept is not None
        assert kept.stored.keys() == {"metrics.jsonl", "probe.json"}, (
            "made of the index, not of files"
        )
        assert (kept.config, kept.status, kept.result) == (plain.config, plain.status, plain.result)
        assert (kept.label, kept.environment) == (plain.label, plain.environment)
        assert read_validations(kept) == read_validations(plain)
        assert read_probe(kept).value == read_probe(plain).value
    before = known.record(folder.name)
    assert before is not None
    write_json(folder / RESULT, dict(before.result or {}) | {"seconds": 1.0})
    for _ in range(TURNS):
        known.look(60.0)
    (changed,) = known.records([folder.name, "nobody"]).values()
    assert changed.result is not None
    assert changed.result["seconds"] == 1.0


def test_a_summary_is_compared_as_its_record_is_without_reading_it(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = look_once(results)
    (grid,) = known.all_grids().values()
    wanted = [cell.run for cell in grid.cells]
    whole = gather(grid, known.records(wanted))
    monkeypatch.setattr(type(known), "record", None)  # nothing of a run may be read for its scores
    part = gather(grid, known.summaries([*wanted, "nobody"]))
    assert paired_table(part) == paired_table(whole)
    monkeypatch.undo()
    for variant in whole.variants:
        ours, theirs = part.records(variant), whole.records(variant)
        assert part.role(variant) == whole.role(variant)
        assert validation_curve(ours) == validation_curve(theirs)
        assert (ours[0].task, ours[0].seed) == (theirs[0].task, theirs[0].seed)
        assert dict(ours[0].config) == theirs[0].config
        assert len(ours[0].config) == len(theirs[0].config)


def test_a_summary_of_a_run_that_goes_on_has_no_result(results: Path) -> None:
    folder = some_run(results)
    (folder / RESULT).unlink()
    write_json(folder / STATUS, {"state": "running", "heartbeat": time.time()})
    (found,) = look_once(results).summaries([folder.name]).values()
    assert (found.result, found.status["state"]) == (None, "running")


def test_curves_and_probes_are_read_from_files_where_the_index_is_gone(results: Path) -> None:
    run = some_run(results).name
    write_json(results / "runs" / run / "probe.json", {"depth": {"drift.cosine": [1.0, 0.5]}})
    known = look_once(results)
    record = known.record(run)
    assert record is not None
    shutil.rmtree(results / FOLDER)
    known.look(0.0)  # another, nearly empty index stands there now
    plain = read_record(results / "runs" / run)
    assert read_validations(record) == read_validations(plain)
    assert read_probe(record) == read_probe(plain)
    assert read_validations(record).value
    assert read_probe(record).value


def counting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every run that is read from its files."""
    read: list[str] = []

    def noting(folder: Path, texts=None):  # the real reader, listened to
        read.append(folder.name)
        return read_record(folder, texts)

    monkeypatch.setattr(reading_file, "read_record", noting)
    return read


def test_a_second_process_reads_only_what_changed(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_once(results).close()
    read, folder = counting(monkeypatch), some_run(results)
    second = look_once(results)
    assert len(second.records(second.snapshot.entries)) == 36
    assert read == []
    write_json(folder / STATUS, {"state": "done", "update": 7, "updates": 800})
    assert look_once(results).snapshot.entries[folder.name].update == 7
    assert read == [folder.name]


def test_an_index_deleted_in_the_middle_loses_nothing_and_is_made_again(results: Path) -> None:
    known = look_once(results)
    for at in range(3):
        shutil.rmtree(results / FOLDER)
        assert len(known.snapshot.entries) == 36, "what was seen stays"
        run = sorted(known.snapshot.entries)[at]
        assert known.record(run) is not None
        seen = known.look(60.0)
        assert len(seen.entries) == 36
        assert len(list((results / FOLDER).glob("*.sqlite"))) == 1
    fresh = look_once(results)
    assert fresh.snapshot.entries == known.snapshot.entries


def break_index(results: Path, how: str) -> None:
    look_once(results).close()
    (path,) = (results / FOLDER).glob("*.sqlite")
    if how == "text":
        path.write_text("no database at all " * 400)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif how == "foreign":
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE recipes (name TEXT)")
    elif how == "version":
        with sqlite3.connect(path) as other:
            other.execute("UPDATE about SET format = '0'")
    elif how == "rows":
        with sqlite3.connect(path) as other:
            other.execute("UPDATE runs SET state = 'nonsense'")
    elif how == "blobs":
        with sqlite3.connect(path) as other:
            other.execute("UPDATE files SET record = X'00', probe = X'00'")
    elif how == "texts":
        with sqlite3.connect(path) as other:
            other.execute("UPDATE files SET record = 'no JSON', probe = 'none'")
    elif how == "half":
        with sqlite3.connect(path) as other:
            other.execute("DROP TABLE files")


BROKEN = ("text", "cut", "foreign", "version", "rows", "blobs", "texts", "half")


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_is_made_again_without_a_word(results: Path, how: str) -> None:
    break_index(results, how)
    known = look_once(results)
    assert len(known.records(known.snapshot.entries)) == 36
    known.close()
    again = look_once(results)
    assert len(again.records(again.snapshot.entries)) == 36
    again.close()
    final = look_once(results)
    (path,) = (results / FOLDER).glob("*.sqlite")
    assert sqlite3.connect(path).execute("SELECT count(record) FROM files").fetchone() == (36,)
    assert len(final.snapshot.entries) == 36


def test_where_nothing_can_be_written_the_index_stays_in_memory(results: Path) -> None:
    (results / FOLDER).write_text("a file stands where the index would be")
    known = look_once(results)
    assert len(known.records(known.snapshot.entries)) == 36
    assert (results / FOLDER).is_file()


def test_a_run_behind_a_link_is_read_where_links_may_lead_outside_and_never_kept(
    results: Path, tmp_path: Path
) -> None:
    folder = some_run(results)
    shutil.move(folder, tmp_path / folder.name)
    folder.symlink_to(tmp_path / folder.name)
    assert folder.name in look_once(results).snapshot.entries
    assert folder.name not in Index(results).look(60.0).entries
    (path,) = (results / FOLDER).glob("*.sqlite")
    rows = sqlite3.connect(path).execute("SELECT id FROM runs").fetchall()
    assert (folder.name,) not in rows


def test_a_run_that_changed_while_it_was_read_is_read_again(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = some_run(results)

    def meanwhile(path: Path, texts=None):
        record = read_record(path, texts)
        if path == folder and record.status["update"] == 800:
            write_json(folder / STATUS, {"state": "done", "update": 799, "updates": 800})
        return record

    monkeypatch.setattr(reading_file, "read_record", meanwhile)
    known = look_once(results)
    assert known.snapshot.entries[folder.name].update == 800
    assert known.look(60.0).entries[folder.name].update == 799


def test_several_processes_use_one_index_while_runs_come_and_go(results: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from depthpde.records.index.index import look_once\n"
        "for _ in range(5): print(len(look_once(Path(sys.argv[1])).snapshot.entries))"
    )
    shutil.rmtree(results / FOLDER, ignore_errors=True)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(results)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    moving = sorted((results / "runs").iterdir())[:6]
    while any(each.poll() is None for each in started):
        for folder in moving:
            folder.rename(results / folder.name)
            (results / folder.name).rename(folder)
            time.sleep(0.002)
    for each in started:
        output, wrong = each.communicate()
        assert each.returncode == 0, wrong.decode()
        counts = [int(line) for line in output.split()]
        assert len(counts) == 5
        assert all(30 <= count <= 36 for count in counts), counts
    assert len(look_once(results).snapshot.entries) == 36


def test_looking_touches_nothing_but_its_own_folder(results: Path) -> None:
    def state() -> dict[str, int]:
        found = (each for each in sorted(results.rglob("*")) if FOLDER not in each.parts)
        return {str(each): each.stat().st_mtime_ns for each in found}

    before = state()
    known = look_once(results)
    known.records(known.snapshot.entries)
    assert state() == before
    assert (results / FOLDER / ".gitignore").read_text() == "*\n"


def test_progress_is_told_to_the_end(results: Path) -> None:
    printed: list[tuple[int, int]] = []
    look_once(results, lambda done, of: printed.append((done, of)))
    assert printed == [(k, 36) for k in range(1, 37)]


def test_a_folder_without_runs_gets_no_index_until_the_first_comes(
    results: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    known = Index(empty)
    assert not known.look(60.0).entries
    assert not (empty / FOLDER).exists()
    shutil.copytree(results / "runs", empty / "runs")
    assert len(known.look(60.0).entries) == 36
    assert (empty / FOLDER).is_dir()


def test_curves_and_probes_that_cannot_be_read_are_told(results: Path) -> None:
    first, second = sorted((results / "runs").iterdir())[:2]
    (first / "metrics.jsonl").write_text("{}\n")
    (second / RESULT).unlink()
    (second / "probe.json").write_text("[")
    for _ in range(2):  # as it was read, and as it was kept
        printed = {each.path: each.reason for each in look_once(results).unread_parts()}
        assert set(printed) == {
            Path("runs") / first.name / "metrics.jsonl",
            Path("runs") / second.name / "probe.json",
        }
        assert not any(str(results) in reason for reason in printed.values())
    record = look_once(results).record(first.name)
    assert record is not None
    assert read_validations(record).broken is not None


def test_a_grid_written_later_is_found(results: Path) -> None:
    known = Index(results)
    grid = known.look(60.0).grids["placement"]
    write_grid(results, type(grid)("second", "?", "baseline", grid.cells[:3], {}))
    assert list(known.look(60.0).grids) == ["placement", "second"]


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
    snapshot = Index(results).look(60.0)
    if field == "error" and number == '"x"':
        assert len(snapshot.entries) == 36
        return
    assert len(snapshot.entries) == 35
    (broken,) = snapshot.broken
    assert "status.json" in broken.reason

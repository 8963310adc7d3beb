import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from depthpde.runs.execute import execute
from depthpde.runs.tracking import TRACKERS, follow, replay, tracker
from depthpde.training.loop import train
from training.counting import make_config, make_model, make_split


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def record(run, results, prepared):
    return execute(run, results, prepared=prepared)


class Kept(list):
    """A sink that keeps what it is given."""

    def __call__(self, update, numbers):
        self.append((update, dict(numbers)))


def test_a_record_is_replayed_whole_and_in_order(record):
    kept = Kept()
    assert replay(record, kept) == len(kept)
    assert [update for update, _ in kept] == sorted(update for update, _ in kept)
    losses = {update: line["train/loss"] for update, line in kept if "train/loss" in line}
    assert losses == {point["update"]: point["loss"] for point in record.points()}
    shown = {update: line for update, line in kept if "validation/accuracy" in line}
    for each in record.validations():
        line = shown[each["update"]]
        assert line["validation/accuracy"] == each["accuracy"]
        assert {name for name in line if name.startswith("ratio/")} == {
            f"ratio/{name}" for name in each["ratios"]
        }
    test = record.result["test"]
    assert kept[-1] == (8, {"test/accuracy": test["accuracy"], "test/loss": test["loss"]})


def test_a_run_is_followed_and_a_resumed_one_sends_nothing_twice(tmp_path):
    def stop(history, point):
        if history.update == 14:
            os.kill(os.getpid(), signal.SIGINT)

    whole, halves = Kept(), Kept()
    data = {"validation": make_split("validation", 60)}
    train(make_model(), make_split(), make_config(), callback=follow(whole), **data)
    for ending in (stop, lambda history, point: None):
        one = follow(halves)

        def callback(history, point, one=one, ending=ending):
            one(history, point)
            ending(history, point)

        train(make_model(), make_split(), make_config(), callback=callback, folder=tmp_path, **data)
    assert halves == whole
    assert len(whole) == 8 + 4


SEND = """
import sys
from pathlib import Path
from depthpde.records.record import read_record
from depthpde.runs.tracking import replay, tracker
record = read_record(Path(sys.argv[1]))
about = {"run": record.id, "project": "ours", "config": record.config}
for library in ("tensorboard", "trackio", "wandb", "mlflow", "mlflow"):  # the last is resumed
    with tracker(library, Path(sys.argv[2]) / library, **about) as sink:
        replay(record, sink)
        sink(9, {"doctor/update of α(x)": 2.5})
"""


@pytest.fixture(scope="module")
def sent(run, results, prepared, tmp_path_factory):
    """A record in every tracker; one process of its own, as these libraries warn on import."""
    for name in TRACKERS:
        pytest.importorskip(name, reason=f"{name} is not installed")
    folder = tmp_path_factory.mktemp("trackers")
    record = execute(run, results, prepared=prepared)
    nowhere = {"WANDB_BASE_URL": "http://127.0.0.1:9", "TRACKIO_DIR": str(folder / "trackio")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SEND, record.folder, folder],
        capture_output=True, text=True, check=False, timeout=300, env=os.environ | nowhere,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""  # with --json that is one object
    return folder


def losses_of(record):
    return {point["update"]: point["loss"] for point in record.points()}


def run_script(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *arguments],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tensorboard_reads_what_was_sent(record, sent):
    found = run_script(
        """
        import json, sys
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        events = EventAccumulator(sys.argv[1]).Reload()
        tags = events.Tags()["scalars"]
        print(json.dumps({t: [(e.step, e.value) for e in events.Scalars(t)] for t in tags}))
        """,
        sent / "tensorboard" / record.id,
    )
    assert dict(found["train/loss"]) == pytest.approx(losses_of(record), rel=1e-6)  # float32
    assert found["test/accuracy"][0][1] == pytest.approx(record.accuracy)


def test_trackio_holds_what_was_sent(record, sent):
    with sqlite3.connect(sent / "trackio" / "ours.db") as store:
        rows = store.execute("select run_name, step, metrics from metrics order by step").fetchall()
    store.close()
    lines = [(step, json.loads(text)) for name, step, text in rows if name == record.id]
    losses = {step: line["train/loss"] for step, line in lines if "train/loss" in line}
    assert losses == losses_of(record)


def test_wandb_holds_what_was_sent_without_a_network(record, sent):
    (folder,) = (sent / "wandb" / "wandb").glob("offline-run-*")
    (file,) = folder.glob("run-*.wandb")
    name, lines = run_script(
        """
        import json, sys
        from pathlib import Path
        from wandb.proto import wandb_internal_pb2
        data = Path(sys.argv[1]).read_bytes()
        assert len(data) < 32768, "one block of LevelDB's log: a head of 7 bytes, then records"
        at, name, lines = 7, None, []
        while at < len(data):
            size = int.from_bytes(data[at + 4 : at + 6], "little")
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data[at + 7 : at + 7 + size])
            at += 7 + size
            if record.WhichOneof("record_type") == "run":
                name = record.run.display_name, record.run.project, record.run.run_group
            if record.WhichOneof("record_type") == "history":
                keys = {i.key or ".".join(i.nested_key): i.value_json for i in record.history.item}
                lines.append({key: json.loads(each) for key, each in keys.items()})
        print(json.dumps([name, lines]))
        """,
        file,
    )
    assert name == [record.id, "ours", record.id]
    found = {line["_step"]: line["train/loss"] for line in lines if "train/loss" in line}
    assert found == losses_of(record)
    assert lines[-1]["doctor/update of α(x)"] == 2.5


def test_mlflow_holds_what_was_sent_and_goes_on_with_a_run(record, sent):
    (run,) = (sent / "mlflow").glob("*/*/meta.yaml")  # one run, although it was opened twice
    assert "status: 3" in run.read_text()  # finished
    rows = [line.split() for line in (run.parent / "metrics/train/loss").read_text().splitlines()]
    assert {int(step): float(value) for _, value, step in rows} == losses_of(record)
    assert len(rows) == 2 * len(record.points())
    assert (run.parent / "params/model.dim").read_text() == str(record.config["model"]["dim"])
    (reading,) = (run.parent / "metrics/doctor").iterdir()
    assert reading.name == "update of α_x_"  # MLflow's own rule for names


@pytest.mark.parametrize("library", list(TRACKERS))
def test_without_the_library_it_says_which_extra_brings_it(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ValueError, match=rf"needs {library}.*pip install 'depthpde\[track\]'"):
        tracker(library, "x", run="y").__enter__()


def test_a_tracker_nobody_knows_names_the_nearest():
    with pytest.raises(ValueError, match=r"`library` must be one of .*did you mean 'wandb'\?"):
        tracker("wandbb", "x", run="y")

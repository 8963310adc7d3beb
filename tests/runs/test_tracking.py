import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from depthpde.runs.execute import execute
from depthpde.runs.tracking import follow, replay, tensorboard, trackio
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


def test_tensorboard_reads_what_was_sent(record, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    script = textwrap.dedent("""
        import json, sys
        from pathlib import Path
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from depthpde.records.record import read_record
        from depthpde.runs.tracking import replay, tensorboard
        with tensorboard(sys.argv[2]) as sink:
            replay(read_record(Path(sys.argv[1])), sink)
        events = EventAccumulator(sys.argv[2]).Reload()
        tags = events.Tags()["scalars"]
        print(json.dumps({t: [(e.step, e.value) for e in events.Scalars(t)] for t in tags}))
    """)
    # A process of its own: the library warns of its own dependencies while being imported.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, record.folder, tmp_path],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = {point["update"]: point["loss"] for point in record.points()}
    assert dict(found["train/loss"]) == pytest.approx(wanted, rel=1e-6)  # it keeps float32
    assert found["test/accuracy"][0][1] == pytest.approx(record.accuracy)


def test_trackio_holds_what_was_sent(record, tmp_path):
    pytest.importorskip("trackio", reason="trackio is not installed")
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from depthpde.records.record import read_record
        from depthpde.runs.tracking import replay, trackio
        record = read_record(Path(sys.argv[1]))
        with trackio("ours", record.id, config=record.config) as sink:
            replay(record, sink)
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, record.folder],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"TRACKIO_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(tmp_path / "ours.db") as store:
        rows = store.execute("select run_name, step, metrics from metrics order by step").fetchall()
    store.close()
    lines = [(step, json.loads(text)) for name, step, text in rows if name == record.id]
    losses = {step: line["train/loss"] for step, line in lines if "train/loss" in line}
    assert losses == {point["update"]: point["loss"] for point in record.points()}


@pytest.mark.parametrize(
    ("library", "open_sink"),
    [("torch.utils.tensorboard", lambda: tensorboard("x")), ("trackio", lambda: trackio("x", "y"))],
)
def test_without_the_library_it_says_what_to_install(monkeypatch, library, open_sink):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"must be installed to send runs there; use pip install"):
        open_sink().__enter__()

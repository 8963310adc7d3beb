"""A run is computed once, taken up where it stood, and recorded whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from depthpde.models.classifier import Classifier
from depthpde.records.record import State, read_record, read_records
from depthpde.runs.execute import BusyError, ensure_prepared, execute
from depthpde.training.pretraining import PretrainingConfig

CHILD = """
import json, os, signal, sys, time
from pathlib import Path
import torch._dynamo
import depthpde.runs.execute as module
from depthpde.runs.run import RunConfig

def compute(values, results, at, number, phase):
    def callback(model, stage):
        def look(history, now):
            if history.update == at:
                os.kill(os.getpid(), number)
        return look
    if phase:
        inner = getattr(module, phase)
        def signalled(*words, **options):
            os.kill(os.getpid(), number)
            time.sleep(0.1)
            return inner(*words, **options)
        setattr(module, phase, signalled)
    run = RunConfig.from_dict(values)
    return module.execute(run, Path(results), prepared=Path(sys.argv[1]), callback=callback).state

ends = {}
for name, words in json.loads(sys.stdin.read()).items():
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            told = compute(*words)
        except BaseException as error:
            told = type(error).__name__
        os.write(write, str(told).encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as stream:
        ends[name] = [os.waitstatus_to_exitcode(status), stream.read()]
print(json.dumps(ends))
"""
PHASES = ("ensure_prepared", "evaluate", "place_folder", "seal")


def with_pretraining(run):
    return replace(run, pretraining=PretrainingConfig(updates=10))


@pytest.fixture(scope="module")
def stopped(run, prepared, tmp_path_factory):
    """Runs stopped by a signal, each in a fork of one process: results folder, code, last word."""
    kill, term = int(signal.SIGKILL), int(signal.SIGTERM)
    cases = {
        "killed": (run, 5, kill, None),
        "asked": (run, 5, term, None),
        "killed in pretraining": (with_pretraining(run), 5, kill, None),
        "asked in pretraining": (with_pretraining(run), 5, term, None),
    } | {phase: (run, 0, term, phase) for phase in PHASES}
    place = tmp_path_factory.mktemp("stopped")
    words = {
        name: (each.to_dict(), str(place / name), at, number, phase)
        for name, (each, at, number, phase) in cases.items()
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(prepared)],
        input=json.dumps(words), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name: (place / name, *end) for name, end in json.loads(done.stdout).items()}


def test_a_record_tells_the_whole_run(run, prepared, tmp_path):
    record = execute(run, tmp_path, prepared=prepared)
    assert record.state is State.DONE
    assert record.config == run.to_dict()
    assert record.environment["versions"]["torch"] == torch.__version__
    assert [each["update"] for each in record.points()] == [2, 4, 6, 8]
    assert [each["update"] for each in record.validations()] == [4, 8]
    result = record.result
    assert result["test"]["targets"] == 48
    assert result["test"]["correct"] == round(0.48 * record.accuracy)
    (ratios,) = result["ratios"].values()
    assert len(ratios) == 8
    assert all(0 <= each <= 0.25 for each in ratios)
    assert result["trivial"]["root operator"] > result["trivial"]["majority"]
    assert result["parameters"] == sum(each.numel() for each in run.build().parameters())
    assert not (record.folder / "checkpoints").exists()


def test_predictions_are_those_of_the_saved_model_in_the_order_of_the_split(
    run, prepared, tmp_path
):
    from depthpde.data.catalog import load
    from depthpde.training.evaluate import evaluate

    record = execute(run, tmp_path, prepared=prepared)
    model = Classifier.from_pretrained(record.folder / "model")
    split = load("listops-mini", "test", out=prepared)
    output = evaluate(model, split, batch_size=5).predictions.numpy()
    assert np.array_equal(record.predictions(), output)
    assert (output == split.labels).sum() == record.result["test"]["correct"]


def test_a_finished_run_is_not_computed_again(run, prepared, tmp_path):
    first = execute(run, tmp_path, prepared=prepared)
    stamp = (first.folder / "result.json").stat().st_mtime_ns
    lines: list[str] = []
    again = execute(run, tmp_path, prepared=prepared, log=lines.append)
    assert again == first
    assert (first.folder / "result.json").stat().st_mtime_ns == stamp
    assert any("is finished" in line for line in lines)


@pytest.mark.parametrize("how", ["killed", "asked"])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(run, prepared, tmp_path, stopped, how):
    whole = execute(run, tmp_path, prepared=prepared)
    results, code, printed = stopped[how]
    cut = read_record(results / "runs" / run.id)
    if how == "killed":
        assert code == -signal.SIGKILL
        assert cut.state is State.RUNNING  # until no heartbeat has come for long enough
    else:
        assert (code, printed) == (0, "interrupted")
        assert cut.status["signal"] == signal.SIGTERM
    assert cut.result is None
    lines: list[str] = []
    resumed = execute(run, results, prepared=prepared, log=lines.append)
    assert any("resumed at update" in line for line in lines)
    assert resumed.status["attempts"] == 2
    assert resumed.points() == whole.points()
    assert resumed.validations() == whole.validations()
    assert np.array_equal(resumed.predictions(), whole.predictions())
    ours, theirs = (load_file(each.folder / "model/model.safetensors") for each in (resumed, whole))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_a_run_stopped_in_its_pretraining_or_after_it_ends_as_one_that_was_not(
    run, prepared, tmp_path, stopped
):
    stages = with_pretraining(run)
    whole = execute(stages, tmp_path / "whole", prepared=prepared)
    curve = (whole.folder / "pretraining.jsonl").read_text()
    assert '"update": 10' in curve
    assert [each["update"] for each in whole.points()] == [2, 4, 6, 8]
    results, code, _ = stopped["killed in pretraining"]
    assert code == -signal.SIGKILL
    resumed = execute(stages, results, prepared=prepared)
    assert resumed.points() == whole.points()
    assert (resumed.folder / "pretraining.jsonl").read_text() == curve
    assert not list(resumed.folder.glob("checkpoints*"))
    for record in (whole, resumed):
        printed = record.result["pretraining"]
        assert printed["update"] == 10
        assert printed["seconds"] > 0
        assert printed["tokens"] == whole.result["pretraining"]["tokens"] > 0
    plain = execute(run, tmp_path / "whole", prepared=prepared)
    assert plain.points() != whole.points()
    assert plain.result["pretraining"] is None


def test_a_run_interrupted_in_its_pretraining_says_so(run, prepared, stopped):
    stages = with_pretraining(run)
    results, code, printed = stopped["asked in pretraining"]
    assert (code, printed) == (0, "interrupted")
    status = read_record(results / "runs" / stages.id).status
    assert status["stage"] == {"name": "pretraining", "update": 5, "updates": 10}
    assert "stage" not in execute(stages, results, prepared=prepared).status


def test_a_pretraining_that_diverges_is_the_result_of_the_run(run, prepared, tmp_path):
    wild = replace(run, training=replace(run.training, loss_bound=1e-3))
    record = execute(
        replace(wild, pretraining=PretrainingConfig(updates=10)), tmp_path, prepared=prepared
    )
    assert record.state is State.DIVERGED
    assert record.points() == []
    assert record.result["reason"].startswith("pretraining: loss")


@pytest.mark.parametrize("phase", PHASES)
def test_sigterm_in_any_phase_leaves_a_true_status_and_loses_nothing(run, prepared, stopped, phase):
    results, code, printed = stopped[phase]
    assert (code, printed) == (0, "TerminatedError")
    folder = results / "runs" / run.id
    assert read_record(folder).state is State.INTERRUPTED
    assert read_record(folder).status["signal"] == signal.SIGTERM
    whole = execute(run, results, prepared=prepared)
    assert whole.state is State.DONE
    assert not list(folder.glob(".*partial*"))


def test_a_results_folder_that_vanished_and_came_back_wedges_no_run(run, prepared, tmp_path):
    whole = execute(run, tmp_path / "whole", prepared=prepared)
    results, away = tmp_path / "results", tmp_path / "away"

    def callback(model, stage):
        def look(history, now):
            if history.update == 5:
                results.rename(away)

        return look

    with pytest.raises(OSError, match=str(results)):
        execute(run, results, prepared=prepared, callback=callback)
    shutil.rmtree(results, ignore_errors=True)
    away.rename(results)
    assert read_record(results / "runs" / run.id).state is State.RUNNING, "nobody could write"
    again = execute(run, results, prepared=prepared)
    assert again.state is State.DONE
    assert again.points() == whole.points()
    assert np.array_equal(again.predictions(), whole.predictions())


def test_a_missing_result_is_computed_again_and_said(run, prepared, tmp_path):
    first = execute(run, tmp_path, prepared=prepared)
    (first.folder / "result.json").unlink()
    assert read_record(first.folder).state is State.LOST
    lines: list[str] = []
    again = execute(run, tmp_path, prepared=prepared, log=lines.append)
    assert any("its result is missing; it is computed again" in line for line in lines)
    assert again.points() == first.points()
    assert again.result["test"] == first.result["test"]


def test_what_a_killed_process_left_is_swept(run, prepared, tmp_path):
    folder = tmp_path / "runs" / run.id
    (folder / ".model.partial-7").mkdir(parents=True)
    (folder / ".model.partial-7" / "half").write_text("")
    (folder / ".status.json.partial-7").write_text("{")
    execute(run, tmp_path, prepared=prepared)
    assert not list(folder.glob(".*partial*"))


def test_a_finished_record_vouches_for_every_file_of_the_run(run, prepared, tmp_path):
    record = execute(run, tmp_path, prepared=prepared)
    assert record.checked
    assert set(record.result["checksums"]["files"]) == {
        "config.json", "environment.json", "metrics.jsonl", "predictions.u8", "probe.json",
        "model/config.json", "model/model.safetensors",
    }  # fmt: skip
    modes = {each.stat().st_mode for each in record.folder.rglob("*.*") if each.is_file()}
    assert len({mode & 0o777 for mode in modes}) == 1


def test_a_run_computes_with_its_own_threads_whatever_the_process_has(run, prepared, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        two = execute(run, tmp_path / "two", prepared=prepared)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    one = execute(run, tmp_path / "one", prepared=prepared)
    assert two.environment["threads"] == one.environment["threads"] == 1
    ours, theirs = (each.folder / "model/model.safetensors" for each in (one, two))
    assert ours.read_bytes() == theirs.read_bytes()
    more = execute(replace(run, threads=2), tmp_path / "two", prepared=prepared)
    assert (more.environment["threads"], more.result["notes"]) == (2, [])


def test_a_run_begun_with_other_threads_says_so_in_its_record(run, prepared, tmp_path):
    record = execute(run, tmp_path, prepared=prepared)
    here = dict(record.environment) | {"threads": 2}
    (record.folder / "environment.json").write_text(json.dumps(here))
    (record.folder / "result.json").unlink()
    again = execute(run, tmp_path, prepared=prepared)
    assert any("begun with 2 threads, ended with 1" in note for note in again.result["notes"])


def test_a_run_that_another_process_computes_is_left_to_it(run, prepared, tmp_path):
    def callback(model, stage):
        def look(history, now):
            with pytest.raises(BusyError, match="is being computed by another process"):
                execute(run, tmp_path, prepared=prepared)

        return look

    assert execute(run, tmp_path, prepared=prepared, callback=callback).state is State.DONE


def test_the_device_is_where_the_model_lives_before_any_callback(run, prepared, tmp_path):
    seen = []

    def callback(model, stage):
        seen.append({each.device.type for each in model.parameters()})
        return lambda history, now: None

    with pytest.raises(RuntimeError, match="abacus"):
        execute(run, tmp_path, prepared=prepared, device="abacus", callback=callback)
    assert seen == []
    assert read_records(tmp_path).found[run.id].state is State.FAILED
    assert execute(run, tmp_path, prepared=prepared, callback=callback).state is State.DONE
    assert seen == [{"cpu"}]


def test_divergence_is_a_result(run, prepared, tmp_path):
    wild = replace(run, training=replace(run.training, loss_bound=1e-3))
    record = execute(wild, tmp_path, prepared=prepared)
    assert record.state is State.DIVERGED
    assert "where at most a loss of 0.001" in record.result["reason"]
    assert record.result["update"] == 0


def test_an_error_is_noted_and_raised_and_the_next_attempt_starts_anew(run, prepared, tmp_path):
    def callback(model, stage):
        def look(history, now):
            raise RuntimeError("the lamp fell over")

        return look

    with pytest.raises(RuntimeError, match="the lamp fell over"):
        execute(run, tmp_path, prepared=prepared, callback=callback)
    failed = read_records(tmp_path).found[run.id]
    assert failed.state is State.FAILED
    assert failed.status["error"] == "RuntimeError: the lamp fell over"
    assert execute(run, tmp_path, prepared=prepared).state is State.DONE


def test_a_generated_task_is_prepared_when_it_is_needed(run, tmp_path):
    lines: list[str] = []
    place = ensure_prepared(run, None, tmp_path, lines.append)
    assert (place / "manifest.json").is_file()
    assert lines[0] == "preparing listops-mini"


def test_refuses_data_of_another_recipe(run, prepared):
    with pytest.raises(ValueError, match=r"`recipe` must be .* got 99"):
        ensure_prepared(replace(run, recipe=99), None, prepared)


def test_a_folder_that_cannot_be_written_is_named(run, prepared, tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(OSError, match=r"file.*runs"):
        execute(run, place, prepared=prepared)
    assert os.listdir(tmp_path) == ["file"]

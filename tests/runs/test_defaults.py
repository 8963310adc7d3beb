"""Settings follow the sizes of a task, and every such task trains."""

import numpy as np
import pytest

import depthpde as dp
from depthpde.runs.defaults import defaults

Y = [0, 1] * 10


@pytest.mark.parametrize(
    ("x", "kind", "patch"),
    [
        (np.zeros((20, 6), int), "token", 4),
        (np.random.default_rng(0).normal(size=(20, 6, 3)), "linear", 4),
        (np.random.default_rng(0).normal(size=(20, 8, 8, 3)), "patch", 2),
        (np.zeros((20, 64, 64), np.uint8), "patch", 4),
        (np.zeros((20, 7, 5), np.uint8), "linear", 4),
    ],
)
def test_the_input_follows_the_task(x, kind, patch, tmp_path):
    task = dp.Task.from_arrays("mine", x, Y)
    found = defaults(task)
    assert (found.model.input, found.model.patch) == (kind, patch)
    dp.prepare(task, out=tmp_path)
    model = (dp.VisionTransformer if kind == "patch" else dp.Classifier)(found.model, task=task)
    assert 0 <= dp.evaluate(model, dp.load(task, "test", out=tmp_path)).accuracy <= 100


def test_long_sequences_get_smaller_batches_and_fewer_updates():
    short, long = (defaults(dp.Task.from_arrays("mine", np.zeros((20, n)), Y)) for n in (64, 4096))
    assert (short.training.batch_size, long.training.batch_size) == (32, 16)
    assert long.training.updates < short.training.updates


def test_a_run_of_a_persons_own_task_has_no_preset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "waves"
    folder.mkdir()
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(20, 6, 2)))
    np.save(folder / "y.npy", Y)
    run = dp.build_run("waves", settings={"training.updates": 2, "training.warmup": 0})
    assert (run.task, run.model.channels, run.model.input) == ("waves", 2, "linear")
    moved = tmp_path / "elsewhere" / "waves"
    moved.parent.mkdir()
    folder.rename(moved)
    again = dp.build_run(str(moved), settings={"training.updates": 2, "training.warmup": 0})
    assert again.id == run.id
    with pytest.raises(ValueError, match="mini"):
        dp.build_run(str(moved), preset_name="mini")
    record = dp.execute(again, tmp_path / "results", prepared=tmp_path / "prepared")
    assert record.accuracy is not None


def test_a_table_of_tokens_is_refused_for_real_numbers():
    task = dp.Task.from_arrays("mine", np.zeros((20, 6, 2)), Y)
    with pytest.raises(ValueError, match="linear"):
        dp.Classifier(dp.ModelConfig(dim=8), task=task)
    with pytest.raises(ValueError, match="must be 2"):
        dp.Classifier(dp.ModelConfig(dim=8, input="linear", channels=3), task=task)

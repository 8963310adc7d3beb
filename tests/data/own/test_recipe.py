"""Splits keep every class's share, numbers get one scale, and other data have another version."""

import numpy as np
import pytest
import torch

import depthpde as dp
from depthpde.data.own.examples import read_examples
from depthpde.data.own.recipe import divide, version


def walks(n=60, seed=0):
    draw = np.random.default_rng(seed)
    return draw.normal(3.0, 5.0, (n, 12, 2)), np.arange(n) % 3


def test_splits_are_disjoint_and_keep_the_classes():
    splits = divide(read_examples(*walks()), {}, 0)
    assert {name: len(each) for name, each in splits.items()} == {
        "train": 42,
        "validation": 6,
        "test": 12,
    }
    firsts = [set(each.values[::12, 0].tolist()) for each in splits.values()]
    assert len(set.union(*firsts)) == 60
    assert np.bincount(splits["test"].labels).tolist() == [4, 4, 4]


def test_a_given_split_stays_as_it_is():
    test = read_examples(*walks(9, seed=1))
    splits = divide(read_examples(*walks()), {"test": test}, 0)
    assert splits["test"] is test
    assert len(splits["train"]) + len(splits["validation"]) == 60


def test_too_few_examples_are_refused():
    with pytest.raises(ValueError, match="at least 10"):
        divide(read_examples(*walks(6)), {}, 0)


def test_a_task_shows_what_it_is_and_not_its_arrays():
    shown = repr(dp.Task.from_arrays("walks", *walks(4000)))
    assert "channels=2" in shown
    assert len(shown) < 500


def test_training_numbers_have_mean_nought_and_deviation_one(tmp_path):
    task = dp.Task.from_arrays("walks", *walks())
    dp.prepare(task, out=tmp_path)
    split = dp.load(task, "train", out=tmp_path)
    assert split.tokens.shape == (42 * 12, 2)
    np.testing.assert_allclose(split.tokens.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(split.tokens.std(0), 1, rtol=1e-6)
    _, batch = next(dp.Batches(split, 4).stream())
    assert batch.tokens.shape == (4, 12, 2)
    assert batch.tokens.dtype == torch.float32
    with pytest.raises(ValueError, match="2 real numbers"):
        split.ids(0)


def test_series_of_their_own_length_are_padded_behind_a_mask(tmp_path):
    x = [np.full((4 + k % 3, 1), 1.0 + k) for k in range(20)]
    task = dp.Task.from_arrays("ragged", x, [0, 1] * 10)
    dp.prepare(task, out=tmp_path)
    for batch in dp.Batches(dp.load(task, "train", out=tmp_path), 5).epoch(0):
        assert not batch.tokens[~batch.valid_mask].any()
        assert set(batch.valid_mask.sum(1).tolist()) <= {4, 5, 6}


def test_ids_beyond_a_byte_survive(tmp_path):
    x = np.arange(40).reshape(20, 2) * 1000
    task = dp.Task.from_arrays("ids", x, [0, 1] * 10)
    assert task.vocabulary == 39_002
    dp.prepare(task, out=tmp_path)
    split = dp.load(task, "train", out=tmp_path)
    assert split.ids(0).tolist() in (x + 1).tolist()


def test_other_data_are_another_version_in_another_folder():
    x, y = walks()
    one, same = (dp.Task.from_arrays("mine", x.copy(), y) for _ in range(2))
    x[0, 0, 0] += 1e-3
    other = dp.Task.from_arrays("mine", x, y)
    assert one.generator == same.generator != other.generator
    assert one.stored_as != other.stored_as
    assert one.own
    assert not dp.tasks["listops-mini"].own
    assert version({"train": read_examples(x, y)}) < 16**12


def test_a_text_is_cut_in_its_own_order(tmp_path):
    task = dp.Task.from_text("count", bytes(range(250)) * 20, window=16)
    dp.prepare(task, out=tmp_path)
    assert dp.load(task, "test", out=tmp_path).tokens[0] == 4750 % 250
    with pytest.raises(ValueError, match="2,560"):
        dp.Task.from_text("short", "abc", window=128)


def test_a_name_must_fit_a_folder():
    with pytest.raises(ValueError, match="my task"):
        dp.Task.from_arrays("my task", *walks())

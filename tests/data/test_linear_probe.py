"""The linear probe reads what is linear, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from depthpde.data.linear_probe import linear_accuracy, pair_counts, symbol_counts


def test_symbols_are_counted_by_example():
    found = symbol_counts(np.array([0, 1, 1, 2, 2, 2]), np.array([0, 3, 3, 6]), 3)
    assert found.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 3]]


def test_pairs_share_and_differ_symbol_by_symbol():
    found = pair_counts(np.array([[4.0, 0.0]]), np.array([[1.0, 2.0]]))
    assert found.tolist() == [[3.0, 2.0, 2.0, 0.0]]


def test_linear_classes_are_solved_and_noise_is_chance():
    random = np.random.default_rng(0)
    x = random.standard_normal((3000, 5))
    y = (x @ [1.0, -2.0, 0.5, 0.0, 0.0] > 0).astype(int)
    assert linear_accuracy(x[:2000], y[:2000], x[2000:], y[2000:]) > 95
    noise = random.integers(0, 2, 3000)
    assert linear_accuracy(x[:2000], noise[:2000], x[2000:], noise[2000:]) < 56


def test_what_is_not_linear_is_not_read():
    random = np.random.default_rng(1)
    x = random.standard_normal((3000, 2))
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    assert linear_accuracy(x[:2000], y[:2000], x[2000:], y[2000:]) < 56


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: symbol_counts(np.array([0, 5]), np.array([0, 2]), 3), "below 3.*up to 5"),
        (lambda: symbol_counts(np.array([0]), np.array([0, 2]), 3), "2 symbols"),
        (
            lambda: linear_accuracy(np.ones((12, 1)), np.ones(11, int), np.ones((1, 1)), [0]),
            "12 and 11",
        ),
    ],
)
def test_wrong_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()

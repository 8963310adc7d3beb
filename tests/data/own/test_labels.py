"""Labels of any kind become classes; what is no class is refused with its number."""

import numpy as np
import pytest
import torch

from depthpde.data.own.labels import read_labels


@pytest.mark.parametrize(
    ("given", "classes", "names"),
    [
        ([5, 1, 5], [1, 0, 1], ["1", "5"]),
        (["b", "a", "b"], [1, 0, 1], ["a", "b"]),
        (torch.tensor([[2], [7]]), [0, 1], ["2", "7"]),
        (np.array([1.0, -1.0]), [1, 0], ["-1", "1"]),
        ([True, False], [1, 0], ["False", "True"]),
    ],
)
def test_every_kind_of_label_becomes_a_class(given, classes, names):
    found, called = read_labels(given)
    assert found.tolist() == classes
    assert called == names


def test_a_second_split_keeps_the_classes_of_the_first():
    found, _ = read_labels(["c", "a"], ["a", "b", "c"])
    assert found.tolist() == [2, 0]
    with pytest.raises(ValueError, match="'z'"):
        read_labels(["z"], ["a", "b"])


@pytest.mark.parametrize(
    ("given", "number"),
    [(np.eye(3), r"\[3, 3\]"), ([0.5, 1.5], "0.5"), ([1, 1], "got 1"), (range(300), "got 300")],
)
def test_what_is_no_class_is_refused(given, number):
    with pytest.raises(ValueError, match=number):
        read_labels(given)

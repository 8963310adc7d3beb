"""Arrays, tensors, lists and data sets are one thing; a wrong shape or type is one clear error."""

import numpy as np
import pytest
import torch

from depthpde.data.own.examples import read_examples

Y = [0, 1, 0, 1]


@pytest.mark.parametrize(
    "x",
    [
        np.arange(24.0).reshape(4, 6),
        torch.arange(24.0).reshape(4, 6, 1),
        [list(map(float, range(6 * k, 6 * k + 6))) for k in range(4)],
    ],
)
def test_series_come_in_any_form(x):
    found = read_examples(x, Y)
    assert found.channels == 1
    assert found.lengths.tolist() == [6] * 4
    assert found.values[:, 0].tolist() == list(range(24))


def test_channels_and_lengths_of_their_own_are_kept():
    found = read_examples([np.ones((3, 2)), np.zeros((5, 2))], Y[:2])
    assert (found.channels, found.lengths.tolist()) == (2, [3, 5])
    second = found.take(np.array([1]))
    assert second.values.shape == (5, 2)
    assert second.values.max() == 0
    assert len(second) == 1


def test_tokens_and_words_are_symbols():
    assert read_examples(np.arange(8).reshape(4, 2), Y).channels is None
    words = read_examples(["ab", "cde", b"f", "g"], Y)
    assert words.lengths.tolist() == [2, 3, 1, 1]
    assert bytes(words.values.tolist()) == b"abcdefg"


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((4, 6, 5), np.uint8),
        np.zeros((4, 6, 5, 3), np.uint8),
        np.zeros((4, 3, 6, 5)),
    ],
)
def test_images_are_grids_whichever_axis_has_the_channels(images):
    found = read_examples(images, Y)
    assert found.grid == (6, 5)
    assert found.channels == (1 if images.ndim == 3 else 3)


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, k):
        return torch.full((6, 2), float(k)), torch.tensor(k % 2)


def test_a_torch_data_set_brings_its_labels():
    found = read_examples(Pairs())
    assert found.channels == 2
    assert found.labels.tolist() == Y


def test_a_data_set_with_columns_is_read_by_their_names():
    columns = {
        "input_ids": [[5, 6, 0], [7, 0, 0]],
        "attention_mask": [[1, 1, 0], [1, 0, 0]],
        "label": [1, 0],
    }
    found = read_examples(columns)
    assert found.lengths.tolist() == [2, 1]
    assert found.values.tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("x", "y", "match"),
    [
        (np.zeros((3, 4)), Y, "3 examples and 4 labels"),
        (np.full((4, 4), np.nan), Y, "16 sites"),
        (np.full((4, 4), -1), Y, "-1"),
        (np.zeros((4, 4, 2), np.int64), Y, r"4, 2\]"),
        (np.zeros((4, 2, 2, 2, 2)), Y, "2, 2, 2, 2"),
        ([object()] * 4, Y, "object"),
        ([[1.0, 2.0], [1, 2], [1, 2], [1, 2]], Y, "2 types"),
        ([[1, 2], [], [1], [2]], Y, "length 0 at 1"),
        ([np.zeros((2, 3, 1)), np.zeros((3, 3, 1))] * 2, Y, "2 sizes"),
        ([], [], "2 to 256"),
        (iter([]), None, "`y`"),
        ([1.0, 2.0], None, "float"),
        ({"words": [1], "label": [0]}, None, "words"),
        ({"input_ids": [1]}, None, "label"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_number(x, y, match):
    with pytest.raises(ValueError, match=match):
        read_examples(x, y)


def test_no_examples_are_refused():
    first = read_examples(np.zeros((4, 6)), Y)
    with pytest.raises(ValueError, match="none"):
        read_examples([], np.zeros(0, int), like=first)


def test_a_second_split_must_be_like_the_first():
    first = read_examples(np.zeros((4, 6, 2)), Y)
    with pytest.raises(ValueError, match="channels 2"):
        read_examples(np.zeros((4, 6)), Y, like=first)

from __future__ import annotations

import pytest
import torch

from depthpde.operators.boundary import Boundary, count_edges, open_edges, segments_of


@pytest.mark.parametrize(
    ("boundary", "counts"),
    [(Boundary.NO_FLUX, (4, 2, 0)), (Boundary.PERIODIC, (5, 5, 5)), (Boundary.FIXED, (6, 8, 12))],
)
def test_counts_the_edges_of_a_chain_of_five(boundary, counts):
    assert tuple(count_edges(5, boundary, dilation) for dilation in (1, 3, 7)) == counts


def test_an_edge_is_open_when_every_condition_holds():
    u = torch.zeros(1, 6, 1)
    valid = torch.tensor([[True, True, True, True, True, False]])
    segments = torch.tensor([[0, 0, 1, 1, 1, 1]])
    opened = open_edges(u, valid_mask=valid, segments=segments, row_length=3)
    assert opened.tolist() == [[True, False, False, True, False]]
    assert open_edges(u, valid_mask=valid, dilation=2).tolist() == [[True, True, True, False]]
    assert open_edges(u, row_length=3, dilation=2).tolist() == [[True, False, False, True]]


def test_no_condition_means_no_tensor():
    assert open_edges(torch.zeros(1, 6, 1)) is None


def test_a_dilation_beyond_the_length_leaves_no_edge():
    u = torch.zeros(2, 3, 1)
    assert open_edges(u, valid_mask=torch.ones(2, 3, dtype=torch.bool), dilation=5).shape == (2, 0)


def test_refuses_rows_that_do_not_fill_the_sequence():
    with pytest.raises(ValueError, match="`row_length` must divide the length 6, got 4; pad"):
        open_edges(torch.zeros(1, 6, 1), row_length=4)
    with pytest.raises(ValueError, match="`row_length` must be at least 1, got 0"):
        open_edges(torch.zeros(1, 6, 1), row_length=0)


def test_refuses_segments_of_another_shape():
    with pytest.raises(ValueError, match=r"`segments` must have shape .* \[1, 6\], got \[1, 5\]"):
        open_edges(torch.zeros(1, 6, 1), segments=torch.zeros(1, 5, dtype=torch.int64))


def test_the_ends_of_packed_sequences_number_their_sites():
    u = torch.zeros(1, 6, 1)
    ends = torch.tensor([0, 2, 5, 6])
    assert segments_of(ends, u).tolist() == [[0, 0, 1, 1, 1, 2]]
    assert open_edges(u, segments=ends).tolist() == [[True, False, True, True, False]]


@pytest.mark.parametrize(
    ("ends", "batch"), [(torch.tensor([0, 6]), 2), (torch.tensor([0.0, 6.0]), 1)]
)
def test_refuses_ends_that_are_no_numbers_of_one_row(ends, batch):
    with pytest.raises(
        ValueError, match=rf"batch of one, got .* batch of {batch}; give `segments`"
    ):
        segments_of(ends, torch.zeros(batch, 6, 1))

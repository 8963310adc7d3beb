import pytest
import torch

from depthpde.insertion.record import Output
from depthpde.insertion.site_axis import find_site_axes, shortened


def output(*shape):
    return Output("m", "M", torch.zeros(shape))


def axes(before, after, length):
    outputs = {("m", 0, 0): output(*before), ("", 0, 0): output(1, length)}
    less = (
        None if after is None else {("m", 0, 0): output(*after), ("", 0, 0): output(1, length - 1)}
    )
    found = find_site_axes(outputs, length, lambda: less)
    return found[("m", 0, 0)].axes if ("m", 0, 0) in found else None


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        ((4, 4, 4), (4, 3, 4), (1,)),
        ((4, 4, 4, 4), (4, 4, 3, 4), (2,)),
        ((4, 4, 4, 4), (4, 4, 3, 3), (2,)),  # of attention weights the queries
        ((4, 4), (3, 4), (0,)),
        ((4,), (4,), None),  # a ratio as wide as the sequence is long
        ((4, 8), (4, 6), None),
        ((4, 4), (4,), None),
        ((4, 4, 4), None, (0, 1, 2)),  # one length only: each may be meant
        ((4,), None, None),
    ],
)
def test_the_sites_are_counted_by_the_axis_that_shrinks(before, after, want):
    assert axes(before, after, 4) == want


def test_inputs_shrink_along_their_own_axis_and_masks_as_one_may_mean_them():
    ids, pairs, heads = torch.zeros(4, 4), torch.zeros(4, 4), torch.zeros(4, 1, 4, 4)
    first, second = shortened((ids, 3), {"pairs": pairs, "heads": heads}, 0, 1, 4)
    assert first[0][0].shape == second[0][0].shape == (4, 3)
    assert first[0][1] == 3
    assert (first[1]["pairs"].shape, second[1]["pairs"].shape) == ((4, 3), (3, 3))
    assert first[1]["heads"].shape == (4, 1, 3, 3)


def test_refuses_outputs_without_sites():
    with pytest.raises(ValueError, match="some output with an axis of 5 sites"):
        find_site_axes({("", 0, 0): output(2, 3)}, 5, lambda: None)

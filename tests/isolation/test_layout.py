import pytest
import torch

from depthpde.isolation.layout import Layout, find_layout

B, N = 4, 4  # equal on purpose: a size alone tells nothing


@pytest.mark.parametrize(
    ("shape", "fewer", "shorter", "layout"),
    [
        ((4, 4, 4), (3, 4, 4), (4, 3, 4), Layout(0, 1)),
        ((4, 4, 4), (4, 3, 4), (3, 4, 4), Layout(1, 0)),
        ((16, 4), (12, 4), (12, 4), Layout(0, 0)),
        ((8, 4, 4), (6, 4, 4), (8, 3, 3), Layout(0, 1)),
        ((4, 4), (3, 4), (4, 4), Layout(0, None)),
        ((1, 4, 4), (1, 4, 4), (1, 3, 4), Layout(None, 1)),
        ((4, 5, 4), (3, 5, 4), (4, 4, 4), None),  # a site more than the input has
        ((4, 4), (3, 4, 4), (4, 4), None),
        ((4, 4, 2), None, None, Layout(0, 1)),
        ((4,), (4,), None, Layout(None, None)),  # a ratio as wide as the sequence is long
    ],
)
def test_axes_are_those_that_shrink(shape, fewer, shorter, layout):
    assert find_layout(shape, B, N, fewer, shorter) == ((layout,) if layout else ())


def test_where_one_site_less_cannot_be_run_each_axis_of_its_size_may_be_meant():
    assert find_layout((2, 4, 4), 2, 4, (1, 4, 4), None) == (Layout(0, 1), Layout(0, 2))
    assert find_layout((2, 5), 2, 4, (1, 5), None) == (Layout(0, None),)


def test_an_input_without_sites_has_rows_alone():
    assert find_layout((4, 4), 4, 0, (3, 4), None) == (Layout(0, None),)


@pytest.mark.parametrize("layout", [Layout(0, 1), Layout(1, 0), Layout(0, 0), Layout(2, 1)])
def test_arranged_tensors_begin_with_rows_and_sites(layout):
    rows, sites, width = 3, 5, 2
    u = torch.randn(rows, sites, width)
    ways = {
        Layout(0, 1): u,
        Layout(1, 0): u.transpose(0, 1),
        Layout(0, 0): u.flatten(0, 1),
        Layout(2, 1): u.permute(2, 1, 0),
    }
    found = layout.arrange(ways[layout], rows, sites)
    assert torch.equal(found.reshape(rows, sites, width), u)


def test_sizes_that_do_not_fit_are_no_field():
    assert Layout(0, 1).arrange(torch.zeros(3, 5), 2, 5) is None


def test_one_number_has_neither_rows_nor_sites():
    assert Layout(None, None).arrange(torch.tensor(2.0), 3, 5).shape == (1, 1)

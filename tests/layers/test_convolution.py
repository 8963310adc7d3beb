"""A convolution is torch's over the image, and sees no farther than two sites each way."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from depthpde.layers.convolution import Convolution

ROWS, COLUMNS = 5, 6


@pytest.fixture
def convolution():
    torch.manual_seed(0)
    return Convolution(4, (ROWS, COLUMNS), dtype=torch.float64)


@pytest.fixture
def u():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, ROWS * COLUMNS, 4, dtype=torch.float64, generator=generator)


def test_equals_two_convolutions_of_the_image(convolution, u):
    image = u.view(2, ROWS, COLUMNS, 4).permute(0, 3, 1, 2)
    hidden = F.gelu(F.conv2d(image, convolution.enter.weight, convolution.enter.bias, padding=1))
    wanted = F.conv2d(hidden, convolution.out.weight, convolution.out.bias, padding=1)
    wanted = wanted.permute(0, 2, 3, 1).reshape(u.shape)
    torch.testing.assert_close(convolution(u), wanted, rtol=0, atol=1e-13)
    everywhere = torch.ones(2, ROWS * COLUMNS, dtype=torch.bool)
    torch.testing.assert_close(convolution(u, valid_mask=everywhere), wanted, rtol=0, atol=1e-13)


def test_a_site_sees_two_sites_each_way_and_the_end_of_no_other_row(convolution, u):
    u.requires_grad_()
    (reached,) = torch.autograd.grad(convolution(u)[0, COLUMNS].sum(), u)  # row 1, column 0
    seen = reached[0].abs().sum(dim=-1).view(ROWS, COLUMNS) > 0
    wanted = torch.zeros(ROWS, COLUMNS, dtype=torch.bool)
    wanted[:4, :3] = True
    assert torch.equal(seen, wanted)


def test_padding_counts_as_beyond_the_grid(convolution, u):
    valid = torch.arange(ROWS * COLUMNS).expand(2, -1) < 3 * COLUMNS
    other = u.masked_fill(~valid[..., None], 1e6)
    small = Convolution(4, (3, COLUMNS), dtype=torch.float64)
    small.load_state_dict(convolution.state_dict())
    outs = [convolution(each, valid_mask=valid)[:, : 3 * COLUMNS] for each in (u, other)]
    assert torch.equal(*outs)
    torch.testing.assert_close(outs[0], small(u[:, : 3 * COLUMNS]), rtol=0, atol=1e-13)


def test_refuses_another_number_of_sites_features_or_a_grid_that_is_none(convolution, u):
    with pytest.raises(ValueError, match=r"`u` must have 5 × 6 sites, got 29; give the grid"):
        convolution(u[:, :-1])
    with pytest.raises(ValueError, match=r"`u` must have 4 features.*got 3"):
        convolution(u[..., :3])
    with pytest.raises(ValueError, match="`grid` must be rows and columns"):
        Convolution(4, 30)

"""Diffusion over an image against its dense matrix."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde import Boundary, Method, Scheme, diffuse_2d
from operators.diffusion import cases


def check_against_reference(u, r, grid, tolerance=1e-12, *, method, **settings):
    got, wanted = (
        cases.value_and_gradients(
            lambda u, r, m=m: diffuse_2d(u, r, grid, method=m, **settings), u, r
        )
        for m in (method, Method.REFERENCE)
    )
    cases.assert_same(got, wanted, tolerance)


@pytest.mark.parametrize("grid", [(1, 1), (1, 7), (5, 1), (3, 4), (6, 6)])
@pytest.mark.parametrize("method", [Method.STENCIL, Method.FUSED])
def test_equals_the_reference_in_value_and_gradient(method, grid):
    u = cases.field(2, grid[0] * grid[1], 3)
    for form in ("scalar", "feature"):
        r = cases.ratio(form, u, 0, 0.25)
        for steps in (1, 3):
            check_against_reference(u, r, grid, method=method, steps=steps)
            valid = cases.mask(u)
            check_against_reference(u, r, grid, method=method, steps=steps, valid_mask=valid)


@pytest.mark.parametrize("boundary", list(Boundary))
def test_every_end_in_plain_torch_and_in_the_spectrum(boundary):
    u = cases.field(2, 12, 3)
    r = cases.ratio("feature", u, 0, 0.25)
    check_against_reference(u, r, (3, 4), method=Method.AUTO, boundary=boundary, steps=2)
    check_against_reference(
        u, 4 * r, (3, 4), method=Method.AUTO, boundary=boundary, scheme=Scheme.EXACT, steps=2
    )


def test_first_and_second_derivatives():
    u = cases.field(1, 6, 2).requires_grad_()
    r = cases.ratio("feature", u.detach(), 0, 0.25).requires_grad_()
    assert gradcheck(lambda u, r: diffuse_2d(u, r, (2, 3), steps=2), (u, r))
    assert gradgradcheck(lambda u, r: diffuse_2d(u, r, (2, 3), steps=2), (u, r))


def test_compiles_and_carries_tangents():
    u, r = cases.field(1, 6, 2), torch.full((2,), 0.1, dtype=torch.float64)

    def run(u, r):
        return diffuse_2d(u, r, (2, 3), steps=2)

    torch.testing.assert_close(torch.compile(run, fullgraph=True)(u, r), run(u, r))
    tangent = torch.func.jvp(run, (u, r), (torch.zeros_like(u), torch.ones_like(r)))[1]
    slope = (run(u, r + 1e-6) - run(u, r - 1e-6)) / 2e-6
    torch.testing.assert_close(tangent, slope, rtol=0, atol=1e-8)


def test_walls_keep_their_values_and_tell_nothing():
    u = cases.field(1, 12, 2)
    valid = torch.ones(1, 12, dtype=torch.bool)
    valid[0, 5] = False
    out = diffuse_2d(u.masked_fill(~valid[..., None], float("nan")), 0.2, (3, 4), valid_mask=valid)
    assert torch.isfinite(out[valid]).all()
    assert torch.isnan(out[~valid]).all()


U = torch.zeros(1, 12, 2)


@pytest.mark.parametrize(
    ("ratio", "grid", "settings", "message"),
    [
        (0.3, (3, 4), {}, r"`ratio` must lie in \[0, 0.25\] for the explicit scheme, got 0.3"),
        (0.1, (3, 5), {}, "as many sites as the field, 12, got 3 × 5 = 15; pad the image"),
        (0.1, (3, 0), {}, "`grid` must be at least 1"),
        (0.1, (3, 4), {"scheme": "upwind"}, "must be 'explicit' or 'exact' in two dimensions"),
        (torch.zeros(1, 11, 1), (3, 4), {}, "one for each feature in two dimensions"),
        (
            0.1,
            (3, 4),
            {"scheme": "exact", "valid_mask": torch.ones(1, 12, dtype=torch.bool)},
            "`valid_mask` needs the explicit scheme",
        ),
        (0.1, (3, 4), {"method": "triton"}, "'triton' does only its own schemes"),
    ],
)
def test_bad_input_is_refused(ratio, grid, settings, message):
    with pytest.raises(ValueError, match=message):
        diffuse_2d(U, ratio, grid, **settings)

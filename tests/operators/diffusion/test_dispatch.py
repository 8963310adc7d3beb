"""Bad input to `diffuse`: each a clear error, never a wrong number."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depthpde import diffuse

U = torch.zeros(2, 6, 3)


@pytest.mark.parametrize(
    ("u", "ratio", "settings", "message"),
    [
        (U, 0.6, {}, r"`ratio` must lie in \[0, 0.5\] for the explicit scheme, got 0.6; use a sma"),
        (U, float("nan"), {}, "`ratio` must be finite, got NaN"),
        (U[0], 0.1, {}, r"`u` must be a field \[batch, length, dim\], got 2 axes"),
        (U[:, :0], 0.1, {}, "`u` must have at least one site"),
        (U.long(), 0.1, {}, "`u` must hold floating-point numbers"),
        (
            U,
            torch.zeros(4),
            {},
            r"one for each feature \[3\], or one for each edge \[2 or 1, 5, 3 or",
        ),
        (U, torch.zeros(2, 6, 3), {}, r"got shape \[2, 6, 3\]"),
        (
            U,
            0.1,
            {"valid_mask": torch.ones(2, 5, dtype=torch.bool)},
            "`valid_mask` must have shape",
        ),
        (U, 0.1, {"valid_mask": torch.ones(2, 6)}, "`valid_mask` must be boolean"),
        (U, 0.1, {"scheme": "explcit"}, "`scheme` must be one of .* did you mean 'explicit'"),
        (U, 0.1, {"boundary": "neumann"}, "`boundary` must be one of no_flux, fixed, periodic"),
        (U, 0.1, {"method": "fusd"}, "`method` must be one of auto, .* did you mean 'fused'"),
        (U, 0.1, {"steps": 0}, "`steps` must be at least 1, got 0"),
        (U, 0.1, {"dilation": -2}, "`dilation` must be at least 1, got -2"),
        (U, 0.1, {"scheme": "upwind", "boundary": "periodic"}, "'no_flux' for the causal upwind"),
        (
            U,
            0.1,
            {"boundary": "periodic", "dilation": 9},
            "at most the length 6 with periodic ends",
        ),
        (U, 0.1, {"boundary": "fixed", "row_length": 3}, "must be 'no_flux' where edges are cut"),
    ],
)
def test_bad_input_is_refused(u, ratio, settings, message):
    with pytest.raises(ValueError, match=message):
        diffuse(u, ratio, **settings)


@given(
    st.integers(1, 3), st.integers(1, 40), st.integers(1, 70), st.integers(1, 9), st.floats(0, 0.5)
)
def test_mass_is_kept_and_the_range_never_grows(batch, length, dim, steps, ratio):
    u = torch.randn(batch, length, dim, dtype=torch.float64)
    out = diffuse(u, ratio, steps=steps)
    torch.testing.assert_close(out.sum(1), u.sum(1), rtol=0, atol=1e-11)
    assert out.max() <= u.max() + 1e-12
    assert out.min() >= u.min() - 1e-12


def test_the_first_call_of_a_process_may_be_a_compiled_one():
    code = (
        "import torch, depthpde as dp\n"
        "u = torch.randn(2, 16, 8)\n"
        "for scheme in ('explicit', 'backward_euler', 'exact'):\n"
        "    layer = dp.Diffusion(8, scheme=scheme)\n"
        "    whole = torch.compile(layer, fullgraph=True, backend='eager')\n"
        "    print(torch.allclose(whole(u), layer(u), atol=1e-6))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split() == ["True"] * 3, found.stderr

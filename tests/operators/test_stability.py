"""The bounds are where they are said to be, and the free parameter cannot leave them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depthpde.operators.laplacian import laplacian_matrix, laplacian_matrix_2d
from depthpde.operators.stability import (
    BOUNDS,
    Scheme,
    check_ratio,
    free_from_ratio,
    multiplier,
    ratio_bounds,
    ratio_from_free,
    ratio_from_projection,
)

OMEGA = torch.linspace(0, math.pi, 1001, dtype=torch.float64)


@pytest.mark.parametrize("scheme", list(Scheme))
def test_no_wave_grows_up_to_the_bound_and_one_does_beyond(scheme):
    bound = min(BOUNDS[scheme].stable, 50.0)
    gain = multiplier(scheme, torch.tensor([bound]), OMEGA).abs()
    assert gain.max() <= 1 + 1e-12
    if math.isfinite(BOUNDS[scheme].stable):
        assert multiplier(scheme, torch.tensor([bound * 1.01]), OMEGA).abs().max() > 1


@pytest.mark.parametrize("scheme", [s for s in Scheme if s is not Scheme.UPWIND])
def test_no_wave_changes_sign_up_to_the_bound_and_one_does_beyond(scheme):
    bound = min(BOUNDS[scheme].sign, 50.0)
    assert multiplier(scheme, torch.tensor([bound]), OMEGA).real.min() >= -1e-12
    if math.isfinite(BOUNDS[scheme].sign):
        assert multiplier(scheme, torch.tensor([bound * 1.01]), OMEGA).real.min() < 0


def test_two_dimensions_halve_the_bound():
    assert ratio_bounds(Scheme.EXPLICIT, 2).stable == 1 / 4
    eye = torch.eye(64, dtype=torch.float64)
    L = laplacian_matrix_2d((8, 8))
    assert torch.linalg.matrix_norm(eye + L / 4, 2) <= 1 + 1e-12
    assert torch.linalg.matrix_norm(eye + 0.27 * L, 2) > 1


def test_the_hard_bound_is_the_norm_of_the_matrix():
    eye, L = torch.eye(200, dtype=torch.float64), laplacian_matrix(200)
    assert torch.linalg.matrix_norm(eye + 0.5 * L, 2) <= 1 + 1e-12
    assert torch.linalg.matrix_norm(eye + 0.51 * L, 2) > 1


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1.0))
def test_no_parameter_leaves_the_bound(theta, bound):
    free = torch.tensor(theta, dtype=torch.float32)
    for to_ratio in (ratio_from_free, ratio_from_projection):
        assert 0 <= float(to_ratio(free, bound)) <= bound * (1 + 1e-7)


@given(st.floats(0.001, 0.249))
def test_free_parameter_and_ratio_are_inverse(ratio):
    theta = torch.tensor(free_from_ratio(ratio, 0.25), dtype=torch.float64)
    assert float(ratio_from_free(theta, 0.25)) == pytest.approx(ratio, rel=1e-12)


def test_projection_lets_the_gradient_pass_at_and_beyond_its_ends():
    theta = torch.tensor([-1.0, 0.0, 0.1, 0.25, 9.0], requires_grad=True)
    ratio = ratio_from_projection(theta, 0.25)
    assert ratio.tolist() == [0.0, 0.0, pytest.approx(0.1), 0.25, 0.25]
    ratio.sum().backward()
    assert theta.grad.tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("ratio", "scheme", "message"),
    [
        (
            0.51,
            Scheme.EXPLICIT,
            r"`ratio` must lie in \[0, 0.5\] for the explicit scheme, got 0.51",
        ),
        (-0.1, Scheme.EXACT, r"`ratio` must lie in \[0, ∞\) for the exact scheme, got -0.1; use"),
        (float("nan"), Scheme.EXPLICIT, "`ratio` must be finite, got NaN"),
        (1.2, Scheme.UPWIND, r"`ratio` must lie in \[0, 1\] for the upwind scheme, got 1.2"),
    ],
)
def test_refuses_a_ratio_beyond_the_bound(ratio, scheme, message):
    with pytest.raises(ValueError, match=message):
        check_ratio(torch.tensor([0.1, ratio]), scheme)


def test_an_empty_ratio_is_fine():
    assert check_ratio(torch.zeros(1, 0, 3), Scheme.EXPLICIT).numel() == 0


def test_refuses_a_start_at_the_ends_of_the_sigmoid():
    with pytest.raises(
        ValueError, match=r"`ratio` must lie in .* the sigmoid never reaches its en"
    ):
        free_from_ratio(0.25, 0.25)

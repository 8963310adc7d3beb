import pytest
import torch

from depthpde.operators.laplacian import laplacian, laplacian_matrix
from depthpde.theory.measurement import (
    explicit_step,
    fit_slope,
    jacobian_of,
    matrix_of,
    random_field,
    spectral_norm,
)


def test_matrix_of_a_stencil_is_its_dense_matrix() -> None:
    torch.testing.assert_close(matrix_of(laplacian, 9), laplacian_matrix(9))


def test_matrix_of_keeps_rows_and_columns_apart() -> None:
    shifted = matrix_of(lambda u: torch.roll(u, 1, dims=1), 4)
    assert shifted[1, 0] == 1
    assert shifted[0, 1] == 0


def test_jacobian_of_a_pointwise_map_is_diagonal() -> None:
    u = random_field("test", length=5, dim=2)
    torch.testing.assert_close(jacobian_of(torch.sin, u), torch.diag(u.flatten().cos()))


def test_spectral_norm_is_the_largest_stretch() -> None:
    assert spectral_norm(torch.diag(torch.tensor([1.0, -3.0, 2.0]))) == pytest.approx(3)


def test_slope_of_a_straight_line() -> None:
    x = torch.linspace(0, 5, 11, dtype=torch.float64)
    assert fit_slope(x, 2 - 0.5 * x) == pytest.approx(-0.5)


def test_explicit_step_takes_any_ratio() -> None:
    u = random_field("test")
    torch.testing.assert_close(explicit_step(u, 3.0), u + 3 * laplacian(u))


def test_streams_of_different_claims_differ_and_repeat() -> None:
    assert torch.equal(random_field("a"), random_field("a"))
    assert not torch.equal(random_field("a"), random_field("b"))

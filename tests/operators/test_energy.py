import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from depthpde.operators.boundary import Boundary, open_edges
from depthpde.operators.energy import (
    band_energies,
    cosine_transform,
    dirichlet_energy,
    mass,
    roughness,
)
from depthpde.operators.laplacian import eigenvectors, laplacian, laplacian_matrix
from depthpde.seeds import generator


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "energy"), dtype=torch.float64)


@pytest.mark.parametrize("boundary", list(Boundary))
@pytest.mark.parametrize("dilation", [1, 2])
def test_dirichlet_energy_is_the_quadratic_form_of_the_laplacian(
    boundary: Boundary, dilation: int
) -> None:
    u = draw(2, 7, 3)
    form = laplacian_matrix(7, boundary=boundary, dilation=dilation)
    expected = -0.5 * torch.einsum("bid,ij,bjd->b", u, form, u)
    got = dirichlet_energy(u, boundary=boundary, dilation=dilation)
    torch.testing.assert_close(got, expected)


def test_dirichlet_energy_leaves_cut_edges_out() -> None:
    u = draw(1, 7, 3)
    mask = torch.tensor([[True] * 4 + [False] * 3])
    cut = dirichlet_energy(u, edges=open_edges(u, valid_mask=mask))
    torch.testing.assert_close(cut, dirichlet_energy(u[:, :4]))


def test_weighted_dirichlet_energy_is_the_quadratic_form_of_the_weighted_laplacian() -> None:
    u, weights = draw(2, 7, 3), draw(2, 6, 1).square()
    form = laplacian_matrix(7, weights=weights[..., 0])
    expected = -0.5 * torch.einsum("bid,bij,bjd->b", u, form, u)
    torch.testing.assert_close(dirichlet_energy(u, weights=weights), expected)


@pytest.mark.parametrize(("ratio", "rises"), [(0.25, False), (0.5, False), (0.6, True)])
def test_dirichlet_energy_never_rises_up_to_one_half_and_does_beyond(
    ratio: float, rises: bool
) -> None:
    u = (-1.0) ** torch.arange(16, dtype=torch.float64)[None, :, None] + 0.1 * draw(1, 16, 2)
    after = dirichlet_energy(u + ratio * laplacian(u))
    assert bool(after > dirichlet_energy(u)) is rises


def test_mass_counts_real_tokens_only() -> None:
    u = draw(2, 5, 3)
    mask = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    expected = torch.stack([u[0, :3].sum(0), u[1].sum(0)])
    torch.testing.assert_close(mass(u, valid_mask=mask), expected)
    torch.testing.assert_close(mass(u), u.sum(1))


def test_roughness_times_ratio_is_what_a_step_moves() -> None:
    u = draw(2, 9, 3)
    moved = (0.2 * laplacian(u)).flatten(1).norm(dim=1)
    torch.testing.assert_close(0.2 * roughness(u) * u.flatten(1).norm(dim=1), moved)


def test_roughness_is_zero_for_flat_fields_and_near_four_for_alternating_ones() -> None:
    flat = torch.ones(1, 64, 2, dtype=torch.float64)
    alternating = (-1.0) ** torch.arange(4096, dtype=torch.float64)[None, :, None]
    assert roughness(flat).item() == 0
    assert roughness(0 * flat).item() == 0
    assert 3.99 < roughness(alternating).item() <= 4


@pytest.mark.parametrize("length", [1, 2, 3, 7, 16])
def test_cosine_transform_expands_in_the_no_flux_eigenvectors(length: int) -> None:
    u = draw(2, length, 3)
    expected = torch.einsum("ik,bid->bkd", eigenvectors(length), u)
    torch.testing.assert_close(cosine_transform(u), expected)


@given(length=st.integers(1, 40), bands=st.integers(1, 9))
def test_band_energies_sum_to_the_squared_size(length: int, bands: int) -> None:
    u = draw(2, length, 3)
    energies = band_energies(u, num_bands=bands)
    assert energies.shape == (2, bands)
    assert (energies >= 0).all()
    torch.testing.assert_close(energies.sum(1), u.square().sum((1, 2)))


@pytest.mark.parametrize(("mode", "band"), [(0, 0), (3, 0), (4, 1), (9, 2), (15, 3)])
def test_a_pure_mode_lies_in_its_own_band(mode: int, band: int) -> None:
    u = eigenvectors(16)[None, :, mode, None]
    expected = torch.zeros(1, 4, dtype=torch.float64)
    expected[0, band] = 1
    torch.testing.assert_close(band_energies(u), expected)


def test_refuses_no_bands() -> None:
    with pytest.raises(ValueError, match="`num_bands` must be at least 1, got 0"):
        band_energies(draw(1, 4, 2), num_bands=0)


@pytest.mark.parametrize("measure", [dirichlet_energy, mass, roughness, band_energies])
def test_refuses_what_is_not_a_field(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"`u` must be a field \[batch, length, dim\]"):
        measure(draw(4, 2))


def test_refuses_a_mask_that_does_not_fit() -> None:
    with pytest.raises(ValueError, match="`valid_mask` must have shape"):
        mass(draw(1, 4, 2), valid_mask=torch.ones(1, 3, dtype=torch.bool))

"""The stencil is its matrix; the matrix has the declared spectrum."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from depthpde.operators import laplacian as lap
from depthpde.operators.boundary import Boundary, open_edges

ENDS = list(Boundary)
LENGTHS = [1, 2, 3, 4, 7, 8, 31]


def field(length, dim=3):
    return torch.randn(
        2, length, dim, generator=torch.Generator().manual_seed(length), dtype=torch.float64
    )


@pytest.mark.parametrize("boundary", ENDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_stencil_equals_its_matrix(length, boundary):
    u = field(length)
    for dilation in (1, 2, 5):
        if boundary is Boundary.PERIODIC and dilation > length:
            continue
        matrix = lap.laplacian_matrix(length, boundary=boundary, dilation=dilation)
        got = lap.laplacian(u, boundary=boundary, dilation=dilation)
        torch.testing.assert_close(got, matrix @ u, rtol=0, atol=1e-13)


@pytest.mark.parametrize("boundary", ENDS)
@pytest.mark.parametrize("length", LENGTHS)
def test_eigenpairs_are_exact_and_orthonormal(length, boundary):
    matrix = lap.laplacian_matrix(length, boundary=boundary)
    values, vectors = lap.eigenvalues(length, boundary), lap.eigenvectors(length, boundary)
    torch.testing.assert_close(matrix @ vectors, vectors * values, rtol=0, atol=1e-12)
    eye = torch.eye(length, dtype=torch.float64)
    torch.testing.assert_close(vectors.mT @ vectors, eye, rtol=0, atol=1e-12)


@pytest.mark.parametrize("boundary", ENDS)
def test_is_symmetric_and_never_positive(boundary):
    matrix = lap.laplacian_matrix(9, boundary=boundary)
    assert torch.equal(matrix, matrix.mT)
    assert torch.linalg.eigvalsh(matrix).max() <= 1e-12


def test_constants_are_in_the_null_space_unless_the_ends_are_fixed():
    ones = torch.ones(1, 6, 2, dtype=torch.float64)
    assert lap.laplacian(ones).abs().max() == 0
    assert lap.laplacian(ones, boundary=Boundary.PERIODIC).abs().max() == 0
    assert lap.laplacian(ones, boundary=Boundary.FIXED)[0, :, 0].tolist() == [-1, 0, 0, 0, 0, -1]


@pytest.mark.parametrize("boundary", ENDS)
def test_divergence_is_the_negative_adjoint_of_difference(boundary):
    u = field(7)
    flux = torch.randn_like(lap.difference(u, boundary, 2))
    inner = (flux * lap.difference(u, boundary, 2)).sum()
    torch.testing.assert_close(inner, -(lap.divergence(flux, boundary, 2) * u).sum())


def test_is_of_second_order():
    errors = []
    for length in (32, 64, 128):
        x = (torch.arange(length, dtype=torch.float64) + 0.5) / length
        u = torch.cos(math.pi * x)[None, :, None]
        second = -(math.pi**2) * u
        errors.append(float((lap.laplacian(u) * length**2 - second).abs().max()))
    slopes = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(abs(slope - 2) < 0.15 for slope in slopes)


def test_a_cut_edge_carries_nothing():
    u = field(6)
    valid = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    edges = open_edges(u, valid_mask=valid)
    out = lap.laplacian(u, edges=edges)
    torch.testing.assert_close(out[0, :4], lap.laplacian(u[:1, :4])[0])
    assert out[0, 4:].abs().max() == 0
    weights = edges.double()
    torch.testing.assert_close(out, lap.laplacian_matrix(6, weights=weights) @ u)


@pytest.mark.parametrize("boundary", ENDS)
@pytest.mark.parametrize("grid", [(1, 5), (4, 1), (3, 4), (2, 2)])
def test_plane_equals_its_matrix_and_spectrum(grid, boundary):
    u = field(grid[0] * grid[1])
    matrix = lap.laplacian_matrix_2d(grid, boundary=boundary)
    torch.testing.assert_close(
        lap.laplacian_2d(u, grid, boundary=boundary), matrix @ u, rtol=0, atol=1e-13
    )
    spectrum = lap.eigenvalues_2d(grid, boundary).flatten().sort().values
    torch.testing.assert_close(torch.linalg.eigvalsh(matrix), spectrum, rtol=0, atol=1e-12)


def test_refuses_a_length_of_zero():
    with pytest.raises(ValueError, match="`length` must be at least 1, got 0"):
        lap.eigenvalues(0)

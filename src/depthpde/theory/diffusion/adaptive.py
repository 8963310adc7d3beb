"""Content-dependent diffusion keeps every guarantee, in flux form.

    u_i ← u_i + r_{i+½}(u_{i+1} − u_i) − r_{i−½}(u_i − u_{i−1}),    0 ≤ r_{i±½} ≤ 1/2

For frozen ratios the step is a symmetric doubly stochastic matrix. Derivation:
docs/equations.md §13.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.layers.diffusion import AdaptiveDiffusion
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.energy import dirichlet_energy
from depthpde.operators.laplacian import laplacian
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH, matrix_of, random_field, spectral_norm


def _edge_ratios() -> Tensor:
    return 0.5 * torch.sigmoid(3 * random_field("adaptive", length=LENGTH - 1, dim=1))


def _per_edge() -> Tensor:
    ratios = _edge_ratios()
    return matrix_of(lambda u: diffuse(u, ratios))


def _per_site() -> Tensor:
    ratios = 0.5 * torch.sigmoid(3 * random_field("adaptive/sites", dim=1))
    return matrix_of(lambda u: u + ratios * laplacian(u))


def _column_sums(name: str, matrix: Tensor) -> Check:
    return Check(
        quantity=f"largest |column sum − 1|, {name}",
        predicted=0.0,
        measured=float((matrix.sum(dim=0) - 1).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,
    )


def _layer_keeps_the_mean() -> Check:
    u = 1 + random_field("adaptive/field")
    with torch.no_grad():
        after = AdaptiveDiffusion(u.shape[2], steps=8, dtype=torch.float64)(u)
    return Check(
        quantity="largest change of a feature's mean by the layer, 8 steps",
        predicted=0.0,
        measured=float((after.mean(dim=1) - u.mean(dim=1)).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-14,
    )


def _measure() -> ClaimEvidence:
    matrix, ratios = _per_edge(), _edge_ratios()
    u = random_field("adaptive/field")
    before = dirichlet_energy(u, weights=ratios)
    after = dirichlet_energy(diffuse(u, ratios), weights=ratios)
    return ClaimEvidence(
        checks=(
            _column_sums("a ratio on each edge", matrix),
            Check(
                quantity="smallest entry of the step",
                predicted=0.0,
                measured=float(matrix.min()),
                comparison=Relation.AT_LEAST,
                tolerance=1e-15,
            ),
            Check(
                quantity="‖D‖₂",
                predicted=1.0,
                measured=spectral_norm(matrix),
                tolerance=1e-12,
            ),
            Check(
                quantity="asymmetry of the step, largest |D − Dᵀ|",
                predicted=0.0,
                measured=float((matrix - matrix.mT).abs().max()),
                comparison=Relation.AT_MOST,
                tolerance=1e-15,
            ),
            Check(
                quantity="ratio-weighted energy after one step / before",
                predicted=1.0,
                measured=float(after / before),
                comparison=Relation.AT_MOST,
            ),
            _layer_keeps_the_mean(),
        )
    )


CLAIM = Claim(
    name="adaptive",
    statement="A ratio of its own on each edge keeps the mean, the range and non-expansiveness.",
    equation="D = I − Gᵀ diag(r) G,  0 ≤ r ≤ 1/2:  D = Dᵀ,  D1 = 1,  D ≥ 0",
    source="Paper A, Adaptive PDE Diffusion Layer; our flux form",
    measure=_measure,
    counterexample="a ratio on each site instead of each edge loses the mean",
    refute=lambda: _column_sums("a ratio on each site", _per_site()),
)

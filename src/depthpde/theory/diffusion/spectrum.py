"""The spectrum of the Laplacian on a sequence.

    λ_k = −4 sin²(πk / 2n),    v_k(i) = cos(πk(i + ½)/n),    k = 0 … n−1

Derivation: docs/equations.md §2.
"""

from __future__ import annotations

import math

import torch

from depthpde.operators.boundary import Boundary
from depthpde.operators.laplacian import eigenvalues, eigenvectors, laplacian, laplacian_matrix
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.measurement import LENGTH


def _largest(boundary: Boundary = Boundary.NO_FLUX) -> Check:
    values = torch.linalg.eigvalsh(laplacian_matrix(LENGTH, boundary=boundary))
    return Check(
        quantity=f"largest |λ| of L on {LENGTH} sites",
        predicted=4 * math.sin(math.pi * (LENGTH - 1) / (2 * LENGTH)) ** 2,
        measured=float(values.abs().max()),
        tolerance=1e-12,
    )


def _all_lengths() -> Check:
    worst = 0.0
    for length in (1, 2, 3, 17, LENGTH, 101):
        dense = torch.linalg.eigvalsh(laplacian_matrix(length)).flip(0)
        worst = max(worst, float((dense - eigenvalues(length)).abs().max()))
    return Check(
        quantity="largest error of any λ, lengths 1 to 101",
        predicted=0.0,
        measured=worst,
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


def _eigenvectors() -> Check:
    modes = eigenvectors(LENGTH)[None]
    residual = laplacian(modes) - modes * eigenvalues(LENGTH)
    return Check(
        quantity="largest entry of L v − λ v, stencil on every mode",
        predicted=0.0,
        measured=float(residual.abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-12,
    )


CLAIM = Claim(
    name="spectrum",
    statement="The modes of diffusion are cosines and their decay rates are known in closed form.",
    equation="λ_k = −4 sin²(πk/2n)",
    source="Paper A v2, Theorem 3.2 (spectrum); no-flux form",
    measure=lambda: ClaimEvidence(checks=(_largest(), _all_lengths(), _eigenvectors())),
    counterexample="ends held at zero (zero padding) instead of no-flux walls",
    refute=lambda: _largest(Boundary.FIXED),
)

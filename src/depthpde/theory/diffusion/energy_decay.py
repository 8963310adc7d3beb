"""The Dirichlet energy never rises: it is a Lyapunov function of diffusion.

    E(D_r u) ≤ E(u),      E(D_rˢ u) = ½ Σ_k |λ_k| (1 + rλ_k)^{2s} ‖û_k‖²        for 0 ≤ r ≤ 1/2

Derivation: docs/equations.md §5.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.energy import cosine_transform, dirichlet_energy
from depthpde.operators.laplacian import eigenvalues
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import LENGTH, explicit_step, random_field

STEPS = 60


def _energies(ratio: float) -> Tensor:
    u = random_field("energy_decay")
    energies = [dirichlet_energy(u)]
    for _ in range(STEPS):
        u = explicit_step(u, ratio)
        energies.append(dirichlet_energy(u))
    return torch.cat(energies)


def _largest_rise(ratio: float) -> Check:
    energies = _energies(ratio)
    return Check(
        quantity=f"largest rise of the energy in one of {STEPS} steps, r = {ratio:g}",
        predicted=0.0,
        measured=float(energies.diff().max() / energies[0]),
        comparison=Relation.AT_MOST,
    )


def _by_formula(ratio: float) -> Check:
    values = eigenvalues(LENGTH)
    power = cosine_transform(random_field("energy_decay")).square().sum(dim=(0, 2))
    predicted = float(0.5 * (values.abs() * (1 + ratio * values) ** (2 * STEPS) * power).sum())
    return Check(
        quantity=f"energy after {STEPS} steps, r = {ratio:g}",
        predicted=predicted,
        measured=float(_energies(ratio)[-1]),
        tolerance=1e-10 * predicted,
    )


def _plot() -> Plot:
    steps = list(range(STEPS + 1))
    curves = [
        ("r = 0.05", 0.05, LineRole.BASELINE),
        ("r = 1/4, the default bound", 0.25, LineRole.OURS),
        ("r = 1/2, the hard bound", 0.5, LineRole.FORMULA),
        ("r = 0.52, beyond it", 0.52, LineRole.WARNING),
    ]
    return Plot(
        title="The energy falls at every step, unless r > 1/2",
        x_label="steps",
        y_label="Dirichlet energy / its start",
        log_y=True,
        series=tuple(
            line(name, steps, (_energies(ratio) / _energies(ratio)[0]).tolist(), role)
            for name, ratio, role in curves
        ),
        description="Relative Dirichlet energy of a white field by step. It falls at every step "
        "for r = 0.05, 1/4 and 1/2; for r = 0.52 it falls first and then grows without bound.",
    )


CLAIM = Claim(
    name="energy-decay",
    statement="The Dirichlet energy never rises under diffusion: it is a Lyapunov function.",
    equation="E(D_r u) ≤ E(u),  0 ≤ r ≤ 1/2",
    source="Paper A v2, Theorems 3.4 (Lyapunov monotonicity) and A.1 (energy monotonicity); "
    "v3, layer 1",
    measure=lambda: ClaimEvidence(
        checks=(_largest_rise(0.5), _largest_rise(0.25), _by_formula(0.25), _by_formula(0.5)),
        plots=(_plot(),),
    ),
    counterexample="r = 0.6: the energy rises",
    refute=lambda: _largest_rise(0.6),
)

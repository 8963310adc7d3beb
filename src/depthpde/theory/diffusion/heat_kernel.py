"""A spike spreads out polynomially.

    max_x p_t(x) ≈ (4πt)^{−1/2}        on a line, while the walls are out of reach

Derivation: docs/equations.md §7.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.operators.laplacian import eigenvalues, eigenvectors, laplacian_2d
from depthpde.theory.claim import Check, Claim, ClaimEvidence, LineRole, Plot, Relation, line
from depthpde.theory.measurement import fit_slope

SITES = 1024
GRID = 65


def _times() -> Tensor:
    return torch.logspace(1, 3, 17, dtype=torch.float64)


def _peaks(times: Tensor) -> Tensor:
    """Give the height of a unit spike in the middle of a chain under the exact heat flow.

    p_t(x, x) = Σ_k e^{tλ_k} v_k(x)²
    """
    weight = eigenvectors(SITES)[SITES // 2] ** 2
    return torch.exp(times[:, None] * eigenvalues(SITES)) @ weight


def _peaks_on_a_grid() -> tuple[Tensor, Tensor]:
    """Give times and heights of a spike on a square grid, by explicit steps of r = 1/8."""
    u = torch.zeros(1, GRID * GRID, 1, dtype=torch.float64)
    u[0, GRID * GRID // 2] = 1
    heights = []
    for _ in range(400):
        u = u + 0.125 * laplacian_2d(u, (GRID, GRID))
        heights.append(float(u.max()))
    times = 0.125 * torch.arange(1, 401, dtype=torch.float64)
    late = times >= 5
    return times[late], torch.tensor(heights, dtype=torch.float64)[late]


def _exponent(name: str, times: Tensor, peaks: Tensor) -> Check:
    return Check(
        quantity=f"exponent of the spike's height, {name}",
        predicted=-0.5,
        measured=fit_slope(times.log(), peaks.log()),
        tolerance=0.01,
    )


def _prefactor() -> Check:
    t = 1000.0
    return Check(
        quantity="height × √(4πt) at t = 1000",
        predicted=1.0,
        measured=float(_peaks(torch.tensor([t], dtype=torch.float64))) * math.sqrt(4 * math.pi * t),
        tolerance=1e-3,
    )


def _above_everything() -> Check:
    times = torch.logspace(-2, 3, 51, dtype=torch.float64)
    return Check(
        quantity="largest height × √t, t from 0.01 to 1000",
        predicted=math.sqrt(math.pi) / 4,
        measured=float((_peaks(times) * times.sqrt()).max()),
        comparison=Relation.AT_MOST,
    )


def _plot() -> Plot:
    times = torch.logspace(-1, 3.5, 46, dtype=torch.float64)
    slope = _exponent("line", _times(), _peaks(_times())).measured
    grid_times, grid_peaks = _peaks_on_a_grid()
    return Plot(
        title=f"A spike flattens as 1/√t (fitted exponent {slope:.3f})",
        x_label="time t = α·dt·steps/dx²",
        y_label="height of the spike",
        log_x=True,
        log_y=True,
        series=(
            line("sequence, measured", times.tolist(), _peaks(times).tolist()),
            line(
                "1/√(4πt)",
                times.tolist(),
                (1 / (4 * math.pi * times).sqrt()).tolist(),
                LineRole.FORMULA,
            ),
            line(
                "image grid (falls as 1/t)",
                grid_times[::20].tolist(),
                grid_peaks[::20].tolist(),
                LineRole.BASELINE,
            ),
        ),
        description=f"Height of a unit spike over time on logarithmic axes. On a sequence it "
        f"follows 1/√(4πt), fitted exponent {slope:.3f}; on a two-dimensional grid it falls "
        "faster, as 1/t.",
    )


CLAIM = Claim(
    name="heat-kernel",
    statement="A spike flattens only polynomially, so far tokens keep a trace of it.",
    equation="max p_t ≈ 1/√(4πt)",
    source="Paper A v2, Theorem A.3 (polynomial decay of the heat kernel)",
    measure=lambda: ClaimEvidence(
        checks=(
            _exponent(f"t from 10 to 1000 on {SITES} sites", _times(), _peaks(_times())),
            _prefactor(),
            _above_everything(),
        ),
        plots=(_plot(),),
    ),
    counterexample="a two-dimensional grid, where the exponent is −1",
    refute=lambda: _exponent("grid", *_peaks_on_a_grid()),
)

"""A mix of scales keeps a more balanced spectrum than one scale of the same mean.

    H_mix(ω) = Σ_k w_k (1 − 4r sin²(ω/2))^{s_k}  ≥  (1 − 4r sin²(ω/2))^{Σ w_k s_k} = H_single(ω)

By Jensen's inequality, in every band, at the same ratio (one stability constraint) and the same
mean number of steps (one budget). Derivation: docs/equations.md §10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.energy import band_energies, cosine_transform
from depthpde.operators.laplacian import frequencies
from depthpde.shapes import Field
from depthpde.theory.claim import Check, Claim, Comparison, Evidence, Plot, Role, Series, line
from depthpde.theory.measurement import random_field

SITES, RATIO = 256, 0.25
STEPS = (1, 4, 16)
MEAN_STEPS = sum(STEPS) // len(STEPS)
BANDS = ("low", "low-mid", "high-mid", "high")


def _field() -> Field:
    return random_field("multiscale", length=SITES, dim=16)


def _mix(u: Field, steps: Sequence[int], ratios: Sequence[float]) -> Field:
    parts = [diffuse(u, r, steps=s) for s, r in zip(steps, ratios, strict=True)]
    return torch.stack(parts).mean(dim=0)


def _response(omega: Tensor, steps: int, ratio: float = RATIO) -> Tensor:
    return (1 - 4 * ratio * torch.sin(omega / 2) ** 2) ** steps


def _mixed_response(omega: Tensor) -> Tensor:
    return torch.stack([_response(omega, s) for s in STEPS]).mean(dim=0)


def _balance(energies: Tensor) -> float:
    """Give the entropy of the band shares, 1 for four equal bands and 0 for a single one."""
    shares = energies / energies.sum()
    return float(-(shares * shares.clamp_min(1e-300).log()).sum() / math.log(len(shares)))


def _more_balanced(name: str, mixed: Field, single: Field) -> Check:
    return Check(
        quantity=f"balance of the four band energies, {name} over single",
        predicted=1.05,
        measured=_balance(band_energies(mixed)[0]) / _balance(band_energies(single)[0]),
        comparison=Comparison.AT_LEAST,
    )


def _by_formula() -> Check:
    u = _field()
    power = cosine_transform(u).square().sum(dim=2)
    response = _mixed_response(frequencies(SITES)) ** 2
    predicted = (response * power).reshape(len(BANDS), -1).sum(dim=1)
    return Check(
        quantity="balance of the four band energies of the mix, against |H_mix|²",
        predicted=_balance(predicted),
        measured=_balance(band_energies(_mix(u, STEPS, [RATIO] * 3))[0]),
        tolerance=1e-12,
    )


def _no_band_loses() -> Check:
    u = _field()
    mixed = band_energies(_mix(u, STEPS, [RATIO] * 3))
    single = band_energies(diffuse(u, RATIO, steps=MEAN_STEPS))
    return Check(
        quantity="smallest band energy of the mix over that of the single scale",
        predicted=1.0,
        measured=float((mixed / single).min()),
        comparison=Comparison.AT_LEAST,
    )


def _one_step_scales() -> Check:
    u, ratios = _field(), (0.05, 0.15, 0.25)
    return _more_balanced(
        "one-step scales", _mix(u, (1, 1, 1), ratios), diffuse(u, sum(ratios) / 3)
    )


def _responses() -> Plot:
    omega = torch.linspace(0, math.pi, 61, dtype=torch.float64)
    names = [
        f"{word}, {s} step{'s' * (s > 1)}"
        for word, s in zip(("fast", "medium", "slow"), STEPS, strict=True)
    ]
    return Plot(
        title="The mix passes what each scale alone would stop",
        x_label="frequency ω, radians per site",
        y_label="transfer function H(ω)",
        series=(
            *(
                line(name, omega.tolist(), _response(omega, s).tolist(), Role.BASELINE)
                for name, s in zip(names, STEPS, strict=True)
            ),
            line("mix of the three", omega.tolist(), _mixed_response(omega).tolist()),
            line(
                f"single, {MEAN_STEPS} steps",
                omega.tolist(),
                _response(omega, MEAN_STEPS).tolist(),
                Role.FORMULA,
            ),
        ),
        description=f"Transfer functions at r = 1/4 for {STEPS[0]}, {STEPS[1]} and {STEPS[2]} "
        f"steps, their mean, and a single scale of {MEAN_STEPS} steps. The mean lies above the "
        "single scale at every frequency.",
    )


def _bands() -> Plot:
    u = _field()
    whole = band_energies(u).sum()
    mixed = band_energies(_mix(u, STEPS, [RATIO] * 3))[0] / whole
    single = band_energies(diffuse(u, RATIO, steps=MEAN_STEPS))[0] / whole
    return Plot(
        title="Energy kept in four bands: single scale against the mix",
        x_label="frequency band",
        y_label="energy / energy before",
        bars=True,
        log_y=True,
        series=(
            Series(
                name=f"single, {MEAN_STEPS} steps",
                x=BANDS,
                y=line("", [0] * 4, single.tolist()).y,
                role=Role.BASELINE,
            ),
            Series(name="mix of the three", x=BANDS, y=line("", [0] * 4, mixed.tolist()).y),
        ),
        description="Energy of a white field kept in four frequency bands. "
        + "; ".join(
            f"{band}: single {float(s):.1e}, mix {float(m):.1e}"
            for band, s, m in zip(BANDS, single, mixed, strict=True)
        )
        + ".",
    )


def _measure() -> Evidence:
    u = _field()
    return Evidence(
        checks=(
            _by_formula(),
            _more_balanced("mix", _mix(u, STEPS, [RATIO] * 3), diffuse(u, RATIO, steps=MEAN_STEPS)),
            _no_band_loses(),
        ),
        plots=(_responses(), _bands()),
    )


CLAIM = Claim(
    name="multiscale-bands",
    statement="A mix of fast, medium and slow diffusion keeps a more balanced spectrum than one "
    "scale, under the same stability constraint and the same mean budget.",
    equation="Σ w_k D^{s_k} ≥ D^{Σ w_k s_k}  mode by mode",
    source="Paper A, multi-scale dynamics (Fig. 2: four frequency bands)",
    measure=_measure,
    counterexample="scales of one step each: their mix is a single scale",
    refute=_one_step_scales,
)

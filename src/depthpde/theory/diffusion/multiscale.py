"""A mix of scales keeps a more balanced spectrum than one scale of the same mean.

    H_mix(ω) = Σ_k w_k (1 − 4r sin²(ω/2))^{s_k}  ≥  (1 − 4r sin²(ω/2))^{Σ w_k s_k} = H_single(ω)

By Jensen's inequality, in every band, at the same ratio (one stability constraint) and the same
mean number of steps (one budget). Derivation: docs/equations.md §10.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from depthpde.layers.multiscale import SCALES, MultiscaleDiffusion
from depthpde.operators.diffusion.dispatch import diffuse
from depthpde.operators.energy import band_energies, cosine_transform
from depthpde.operators.laplacian import eigenvectors, frequencies
from depthpde.shapes import Field
from depthpde.theory.claim import (
    Check,
    Claim,
    ClaimEvidence,
    LineRole,
    Plot,
    Relation,
    Series,
    line,
)
from depthpde.theory.measurement import matrix_of, random_field

SITES, FEATURES, RATIO = 256, 16, 0.25
STEPS = {name: scale.steps for name, scale in SCALES.items()}
MEAN_STEPS = sum(STEPS.values()) // len(STEPS)
BANDS = ("low", "low-mid", "high-mid", "high")


def _field() -> Field:
    return random_field("multiscale", length=SITES, dim=FEATURES)


def _layer(dim: int = FEATURES) -> MultiscaleDiffusion:
    """Build the layer with its three named scales, equal weights and r = 1/4 for all."""
    layer = MultiscaleDiffusion(
        dim, scales=" ".join(STEPS), bound=2 * RATIO, initial_ratio=RATIO, dtype=torch.float64
    )
    return layer.requires_grad_(False)


def _mixed() -> Field:
    out: Field = _layer()(_field())
    return out


def _single() -> Field:
    return diffuse(_field(), RATIO, steps=MEAN_STEPS)


def _response(omega: Tensor, steps: int, ratio: float = RATIO) -> Tensor:
    return (1 - 4 * ratio * torch.sin(omega / 2) ** 2) ** steps


def _mixed_response(omega: Tensor) -> Tensor:
    return torch.stack([_response(omega, steps) for steps in STEPS.values()]).mean(dim=0)


def _balance(energies: Tensor) -> float:
    """Give the entropy of the band shares, 1 for four equal bands and 0 for a single one."""
    shares = energies / energies.sum()
    return float(-(shares * shares.clamp_min(1e-300).log()).sum() / math.log(len(shares)))


def _more_balanced(name: str, mixed: Field, single: Field) -> Check:
    return Check(
        quantity=f"balance of the four band energies, {name} over single",
        predicted=1.05,
        measured=_balance(band_energies(mixed)[0]) / _balance(band_energies(single)[0]),
        comparison=Relation.AT_LEAST,
    )


def _by_formula() -> Check:
    power = cosine_transform(_field()).square().sum(dim=2)
    response = _mixed_response(frequencies(SITES)) ** 2
    predicted = (response * power).reshape(len(BANDS), -1).sum(dim=1)
    return Check(
        quantity="balance of the four band energies of the mix, against |H_mix|²",
        predicted=_balance(predicted),
        measured=_balance(band_energies(_mixed())[0]),
        tolerance=1e-12,
    )


def _transfer_function() -> Check:
    layer, modes = _layer(dim=1), eigenvectors(SITES)
    measured = torch.diagonal(modes.mT @ matrix_of(layer, SITES) @ modes)
    predicted = layer.transfer_function(frequencies(SITES))[:, 0].real
    return Check(
        quantity="largest error of the layer's H(ω) over all modes",
        predicted=0.0,
        measured=float((measured - predicted).abs().max()),
        comparison=Relation.AT_MOST,
        tolerance=1e-13,
    )


def _no_band_loses() -> Check:
    return Check(
        quantity="smallest band energy of the mix over that of the single scale",
        predicted=1.0,
        measured=float((band_energies(_mixed()) / band_energies(_single())).min()),
        comparison=Relation.AT_LEAST,
    )


def _one_step_scales() -> Check:
    u, ratios = _field(), (0.05, 0.15, 0.25)
    mixed = torch.stack([diffuse(u, ratio) for ratio in ratios]).mean(dim=0)
    return _more_balanced("one-step scales", mixed, diffuse(u, sum(ratios) / 3))


def _responses() -> Plot:
    omega = torch.linspace(0, math.pi, 61, dtype=torch.float64)
    return Plot(
        title="The mix passes what a single scale would stop",
        x_label="frequency ω, radians per site",
        y_label="transfer function H(ω)",
        series=(
            *(
                line(
                    f"{name}, {steps} step{'s' * (steps > 1)}",
                    omega.tolist(),
                    _response(omega, steps).tolist(),
                    LineRole.BASELINE,
                )
                for name, steps in STEPS.items()
            ),
            line("mix of the three", omega.tolist(), _mixed_response(omega).tolist()),
            line(
                f"single, {MEAN_STEPS} steps",
                omega.tolist(),
                _response(omega, MEAN_STEPS).tolist(),
                LineRole.FORMULA,
            ),
        ),
        description="Transfer functions at r = 1/4 for "
        + ", ".join(f"{name} ({steps})" for name, steps in STEPS.items())
        + f" steps, their mean, and a single scale of {MEAN_STEPS} steps. The mean lies above the "
        "single scale at every frequency.",
    )


def _bands() -> Plot:
    whole = band_energies(_field()).sum()
    mixed, single = (band_energies(each)[0] / whole for each in (_mixed(), _single()))
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
                role=LineRole.BASELINE,
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


def _measure() -> ClaimEvidence:
    return ClaimEvidence(
        checks=(
            _by_formula(),
            _transfer_function(),
            _more_balanced("mix", _mixed(), _single()),
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

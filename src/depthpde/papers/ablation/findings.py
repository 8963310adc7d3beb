"""What the ablation of stabilizers shows: drift, rank, gradients, training, accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from depthpde.pages.formatting import short_tasks, signed
from depthpde.papers.ablation.variants import (
    BOTH,
    NEITHER,
    NO_NORM,
    NO_RESIDUAL,
    STABILIZERS,
    SYSTEMS,
    Ablation,
    Measured,
    label,
)
from depthpde.papers.claims import Judged, in_order, number_claim, spread
from depthpde.records.findings import JudgedClaim

HUNDREDFOLD = 2.0
"""Decades that a divergence counts for at least: how far it went, no record can say."""
DIVERGENCE = (
    "a run that diverges counts in the divergence rate and as a hundredfold gradient at least; its "
    "accuracy is that of the weights it kept, and its other measures after training are left out"
)
"""What a reader must know of runs that diverge."""


def ablation_claims(found: Ablation, systems: Sequence[str] = tuple(SYSTEMS)) -> list[JudgedClaim]:
    """Judge drift, rank, gradients, training and accuracy of each system, in this order."""
    claims = []
    for system in systems:
        variants = {name: label(system, name) for name in STABILIZERS}
        claims += in_order(
            [
                _drift(found, system, variants),
                _rank(found, system, variants),
                _explosion(found, system, variants),
                _amplification(found, system, variants),
                _accuracy(found, system, variants),
            ]
        )
    return claims


def ablation_table(found: Ablation) -> list[dict[str, Any]]:
    """Lay out every variant: what it measured, over tasks and seeds."""
    assert found.plan is not None, "a table lists the variants of a plan"
    rows = []
    for variant in found.plan.variants:
        runs = list(found.of(variant.label).values())
        rows.append(
            {
                "variant": variant.label,
                "centred cosine": spread([m.last("centred") for m in runs]),
                "rank residual": spread([m.last("rank") for m in runs]),
                "token cosine": spread([m.last("token") for m in runs]),
                "log10 |g_0/g_L|": spread([_signed(m, "end") for m in runs]),
                "log10 max gradient": spread(
                    [_log(m.largest_gradient) for m in runs if not m.diverged]
                ),
                "Lyapunov": spread([m.at("end").get("lyapunov") for m in runs]),
                "diverged": divergence(found, variant.label),
                "accuracy": spread([m.record.accuracy for m in runs]),
            }
        )
    return rows


def divergence(found: Ablation, variant: str) -> str:
    """Count the runs of a variant that diverged, of all."""
    runs = found.of(variant).values()
    return f"{sum(m.diverged for m in runs)}/{len(runs)}"


def growths(found: Ablation, variant: str, baseline: str) -> dict[str, list[float]]:
    """Return by how many decades the gradients of a variant outgrow the baseline's, by task.

        log10 max ‖g‖ − log10 max ‖g_baseline‖;    ≥ 2, or ≤ −2, where only one of them diverged

    Where both diverged neither outgrew the other; a pair without any gradient is left out.
    """
    ours, theirs = found.of(variant), found.of(baseline)
    values: dict[str, list[float]] = {}
    for key in sorted(ours.keys() & theirs.keys()):
        a, b = ours[key], theirs[key]
        logs = [_log(each.largest_gradient) for each in (a, b)]
        known = None if logs[0] is None or logs[1] is None else logs[0] - logs[1]
        if a.diverged and b.diverged:
            known = 0.0
        elif a.diverged:
            known = max(HUNDREDFOLD, known or 0.0)
        elif b.diverged:
            known = min(-HUNDREDFOLD, known or 0.0)
        if known is not None:
            values.setdefault(key[0], []).append(known)
    return values


def center(values: Sequence[float | None]) -> float:
    """Return the mean of what numbers there are; NaN if none."""
    finite = [each for each in values if each is not None and math.isfinite(each)]
    return sum(finite) / len(finite) if finite else math.nan


def _drift(found: Ablation, system: str, variants: dict[str, str]) -> Judged | JudgedClaim:
    lost = found.pairs(variants[BOTH], variants[NO_RESIDUAL], lambda m: m.last("centred"))
    left = [m.last("centred") for m in found.of(variants[NO_RESIDUAL]).values()]
    start, end = (
        [m.last("centred", when) for m in found.of(variants[BOTH]).values()]
        for when in ("start", "end")
    )
    mark = max(0.1, center(end) - 0.05) if math.isfinite(center(end)) else 0.1
    return number_claim(
        f"Paper B, {system}: without residuals the representation drifts catastrophically "
        "(cosine with the input → 0)",
        f"centred cosine of the last layer with the first falls by {{mean:.2f}} to {spread(left)} "
        f"without residuals; with both it is {spread(end)} after training, {spread(start)} before: "
        f"the intact model drifts as well; catastrophic counts from a fall of {mark:.2f}",
        lost,
        mark=mark,
    )


def _rank(found: Ablation, system: str, variants: dict[str, str]) -> Judged | JudgedClaim:
    fall = found.pairs(variants[BOTH], variants[NO_RESIDUAL], lambda m: _log(m.last("rank")))
    early = found.pairs(
        variants[BOTH], variants[NO_RESIDUAL], lambda m: _log(m.last("rank", "start"))
    )
    return number_claim(
        f"Dong et al., {system}: without residuals tokens collapse to one (rank collapse)",
        "what is not shared by all tokens is 10^{mean:.1f} times smaller at the last layer without "
        f"residuals (before training 10^{_over_tasks(early):.1f}); collapse counts from tenfold",
        fall,
        mark=1.0,
    )


def _explosion(found: Ablation, system: str, variants: dict[str, str]) -> Judged | JudgedClaim:
    rates = {name: divergence(found, variants[name]) for name in (BOTH, NO_NORM, NEITHER)}
    listed = ", ".join(f"{name} {rate}" for name, rate in rates.items())
    return number_claim(
        f"Paper B, {system}: without LayerNorm training explodes",
        "the largest gradient norm in training, before clipping at 1.0, is 10^{mean:.2f} times "
        f"that with both, a divergence counted as 10^{HUNDREDFOLD:g} at least; diverged runs: "
        f"{listed}; explosive counts from tenfold",
        growths(found, variants[NO_NORM], variants[BOTH]),
        mark=1.0,
    )


def _amplification(found: Ablation, system: str, variants: dict[str, str]) -> Judged | JudgedClaim:
    values = found.pairs(variants[NEITHER], variants[BOTH], lambda m: _backward(m, "start"))
    both = spread([_signed(m, "start") for m in found.of(variants[BOTH]).values()])
    none = spread([_signed(m, "start") for m in found.of(variants[NEITHER]).values()])
    return number_claim(
        f"Paper B, {system}: without stabilizers gradients explode or vanish with depth",
        "before training the gradient changes on its way back through the blocks by a factor of "
        f"10^({none}) with neither, 10^({both}) with both; {{mean:+.1f}} decades more; counts from "
        "one decade",
        values,
        mark=1.0,
    )


def _accuracy(found: Ablation, system: str, variants: dict[str, str]) -> Judged | JudgedClaim:
    gains = {
        name: found.pairs(variants[BOTH], variants[name], lambda m: m.record.accuracy)
        for name in (NO_RESIDUAL, NO_NORM, NEITHER)
    }
    nearest = min(gains, key=lambda name: _over_tasks(gains[name]))
    return number_claim(
        f"Paper B, {system}: training needs both stabilizers",
        f"test accuracy with both − the next best, {nearest}, by task: {_by_task(gains[nearest])}",
        gains[nearest],
        margin=0.75,
    )


def _over_tasks(values: Mapping[str, Sequence[float]]) -> float:
    """Return the mean over tasks; infinite where there is none."""
    means = [center(each) for each in values.values()]
    known = [each for each in means if math.isfinite(each)]
    return sum(known) / len(known) if known else math.inf


def _by_task(values: Mapping[str, Sequence[float]]) -> str:
    short = short_tasks(list(values))
    return ", ".join(f"{short[task]} {signed(center(each))}" for task, each in values.items())


def _log(value: float | None) -> float | None:
    return None if value is None or not value > 0 else math.log10(value)


def _signed(measured: Measured, when: str) -> float | None:
    """Give log10 of what the way back through all blocks multiplies the gradient by."""
    norms = measured.at(when).get("gradient")
    if not norms or not norms[0] or not norms[-1]:
        return None
    return math.log10(norms[0] / norms[-1])


def _backward(measured: Measured, when: str) -> float | None:
    change = _signed(measured, when)
    return None if change is None else abs(change)

"""Entrant: what one variant of a comparison reached from every seed, however it was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from depthpde.records.evidence import Evidence, broke
from depthpde.records.learning_curves import LearningCurve, join
from depthpde.records.record import Record
from depthpde.records.run_model import POSITIONS, VariantRole, site_of
from depthpde.records.scores import Endpoint, scores_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Entrant:
    """One variant."""

    label: str
    words: str = ""
    """What it is, in a sentence."""
    role: VariantRole = VariantRole.OTHER
    scores: Mapping[int, float]
    """Seed → what was reached on the test split."""
    curve: LearningCurve
    """The same on the validation split, along training."""
    parameters: int = 0
    seconds: float = 0.0
    """Of one training, the mean over seeds."""
    ratios: Mapping[str, list[float]] = field(default_factory=dict)
    """Place in the network → what its diffusion has learned, all seeds together."""
    diverged: int = 0
    """Runs that broke: they count as the largest class, and have no loss."""

    @property
    def mean(self) -> float:
        """The mean over seeds; NaN where no run has a score."""
        return sum(self.scores.values()) / len(self.scores) if self.scores else math.nan


def recorded(evidence: Evidence, endpoint: Endpoint) -> list[Entrant]:
    """Return the entrants that the finished runs of one task's grid are, the baseline first.

    A run that broke counts as the largest class; it has no loss. A variant without any finished run
    is left out; without a score of the baseline there is nothing to compare with.

    Args:
        evidence: The runs.
        endpoint: What is compared.
    """
    (task,) = evidence.tasks
    found, scores = [], scores_of(evidence, endpoint)
    for variant in evidence.variants:
        runs = evidence.runs.get((task, variant), {})
        results = [run.result or {} for run in runs.values()]
        known = scores.get(variant, {}).get(task, {})
        broken = sum(map(broke, runs.values()))
        if variant == evidence.baseline:
            check_first(variant, known, endpoint, finished=len(runs), diverged=broken)
        if not runs:
            continue
        found.append(
            Entrant(
                label=variant,
                words=evidence.words.get(variant, ""),
                role=evidence.role(variant),
                scores=known,
                curve=join([_curve(run, endpoint) for run in runs.values()]),
                parameters=int(results[0].get("parameters", 0)),
                seconds=sum(float(each.get("seconds", 0.0)) for each in results) / len(results),
                ratios=_ratios(results),
                diverged=broken,
            )
        )
    return found


def check_first(
    label: str, scores: Mapping[int, float], endpoint: Endpoint, *, finished: int, diverged: int
) -> None:
    """Refuse a first variant without any score: there is nothing to compare with.

    Args:
        label: Its name.
        scores: Seed → what it reached.
        endpoint: What is compared.
        finished: Its runs.
        diverged: Those of them that broke.
    """
    if not scores:
        again = "train it more gently" if diverged else "call it again once what failed is mended"
        raise ValueError(
            f"{label!r} must have a finished run with a test {endpoint.value}, got {finished} "
            f"finished, {diverged} of them diverged; {again}, or name another variant first"
        )


def place_of(name: str) -> str:
    """Say where a learned ratio acts, from the name of its module."""
    site = site_of(name)
    if site is None:
        return name.removesuffix(".ratio")
    words = site.position.replace("_", " ")
    return words if site.block < 0 else f"block {site.block + 1}, {words}"


def _curve(run: Record, endpoint: Endpoint) -> list[tuple[int, float]]:
    return [(int(look["update"]), float(look[endpoint.value])) for look in run.validations()]


def _ratios(
    results: list[Mapping[str, object]] | list[dict[str, object]],
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for result in results:
        ratios = result.get("ratios")
        for name, values in ratios.items() if isinstance(ratios, Mapping) else ():
            found.setdefault(place_of(str(name)), []).extend(values)
    order = {name.replace("_", " "): k for k, name in enumerate(POSITIONS)}
    return dict(sorted(found.items(), key=lambda each: _depth(each[0], order)))


def _depth(place: str, order: Mapping[str, int]) -> tuple[int, int]:
    block, _, position = place.rpartition(", ")
    number = block.removeprefix("block ")
    return (int(number) if number.isdigit() else 0, order.get(position, len(order)))

"""What a protocol makes one do before its tests: choose a rate, pass the gates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from depthpde.records.protocols.protocol import BaselineGate, StudyProtocol

TUNING, GATES = "tuning", "gates"
STAGES = {TUNING: "choose a rate for each variant of", GATES: "tell whether the baseline learned"}
"""Grids of an experiment that are no result by themselves → what their runs do for it."""


def stage_grid(study: str, stage: str) -> str:
    """Return the name of the grid of one stage of an experiment."""
    return f"{study}.{stage}"


def stage_of(grid: str) -> tuple[str, str] | None:
    """Return the experiment and the stage that a grid is of; None for any other grid.

    >>> stage_of("pathfinder.tuning"), stage_of("pathfinder")
    (('pathfinder', 'tuning'), None)
    """
    study, _, stage = grid.rpartition(".")
    return (study, stage) if study and stage in STAGES else None


def rate_label(variant: str, rate: float) -> str:
    """Return what a variant is called among the runs that choose rates.

    >>> rate_label("baseline", 1e-3)
    'baseline @ 0.001'
    """
    return f"{variant} @ {rate:g}"


def choose_rate(losses: Mapping[float, Sequence[float | None]]) -> float:
    """Return the learning rate that lost the fewest tuning seeds, of these the least mean loss.

        min over rates of   (diverged seeds,   mean loss of the others,   rate)

    A variant that diverges at every rate keeps the gentlest one: what breaks is measured too.

    Args:
        losses: Validation losses by rate, one a tuning seed; None or not finite where it diverged.
    """

    def order(rate: float) -> tuple[int, float, float]:
        ended = [each for each in losses[rate] if each is not None and math.isfinite(each)]
        lost = len(losses[rate]) - len(ended)
        return lost, math.fsum(ended) / len(ended) if ended else math.inf, rate

    return min(losses, key=order)


@dataclass(frozen=True, slots=True)
class GateResult:
    """How one gate stands."""

    gate: BaselineGate
    found: float | None
    """What the baseline reached; None where it was not measured yet, NaN where it diverged."""

    @property
    def passed(self) -> bool:
        """Whether the baseline is above the mark."""
        return self.found is not None and self.found > self.gate.least

    def __str__(self) -> str:
        """Describe what was wanted and what was found."""
        found = "not measured yet" if self.found is None else f"{self.found:g}"
        found = "diverged" if found == "nan" else found
        mark = "passed" if self.passed else "open" if self.found is None else "FAILED"
        gate = self.gate
        return f"{gate.task} {gate.endpoint}: {found}, above {gate.least:g} ({gate.words}): {mark}"


class GateError(ValueError):
    """A gate did not open: the experiment stops here, and that is its result."""


def gate_results(
    protocol: StudyProtocol, found: Mapping[tuple[str, str], float]
) -> tuple[GateResult, ...]:
    """Return how every gate stands.

    Args:
        protocol: The experiment's protocol.
        found: What the baseline reached on its tuning seed, by (task, endpoint).
    """
    return tuple(GateResult(g, found.get((g.task, g.endpoint))) for g in protocol.gates)


def failed_gates(results: Sequence[GateResult]) -> tuple[GateResult, ...]:
    """Return the gates that were measured and did not open."""
    return tuple(each for each in results if each.found is not None and not each.passed)


def stops(protocol: StudyProtocol, results: Sequence[GateResult]) -> bool:
    """Return whether gates that failed end the experiment; see `StudyProtocol.least_tasks`.

    Args:
        protocol: The experiment's protocol.
        results: How every gate stands.
    """
    closed = {each.gate.task for each in failed_gates(results)}
    if protocol.least_tasks is None:
        return bool(closed)
    return len({each.task for each in protocol.gates} - closed) < protocol.least_tasks


def pass_gates(
    protocol: StudyProtocol, found: Mapping[tuple[str, str], float]
) -> tuple[GateResult, ...]:
    """Return how every gate stands, or stop where too many failed.

    Args:
        protocol: The experiment's protocol.
        found: What the baseline reached on its tuning seed, by (task, endpoint).
    """
    results = gate_results(protocol, found)
    failed = failed_gates(results)
    if stops(protocol, results):
        raise GateError(
            f"{protocol.name} must pass its gates before a variant is run, got "
            f"{'; '.join(map(str, failed))}. The experiment stops: train the baseline better under "
            "a new protocol with fresh seeds"
        )
    return results

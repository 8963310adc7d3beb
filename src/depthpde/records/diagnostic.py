"""Does a number that is measured inside a model go along with its change of accuracy?

ρ = correlation of ranks within each task,   p by exchanging the variants within each task
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthpde.records.evidence import Evidence
from depthpde.records.probes import read_probe
from depthpde.records.record import Record
from depthpde.records.statistics.paired import mean

DRAWS = 9999


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """How far one measure foretells the change of accuracy."""

    claim: str
    """What would be true if it did."""
    correlation: float
    """Of ranks within tasks; −1 where more of it always means less accuracy."""
    p: float
    """Two-sided, by exchanging the variants within each task."""
    least_p: float
    """The smallest that so many variants and tasks could give."""
    cells: int
    """Task–variant pairs."""


MEASURES: dict[str, Callable[[Mapping[str, Any]], list[float]]] = {
    "Paper A: where diffusion and attention conflict, it harms (nonlinear commutator)": (
        lambda probe: probe["depth"]["coupling.nonlinear"]
    ),
    "Paper A: where diffusion and attention conflict, it harms (frozen commutator)": (
        lambda probe: probe["depth"]["coupling.frozen"]
    ),
    "Where the layers move the field far, they harm": (
        lambda probe: [*probe["layers"]["coupling.moved"].values()]
    ),
    "Where the field is left rough, it harms (smoothness quotient)": (
        lambda probe: probe["depth"]["energy.smoothness"]
    ),
}
"""Claim → one number for each block or layer out of a run's probe."""


def foretell(evidence: Evidence) -> list[Diagnostic]:
    """Set every measure against the change of accuracy, over the cells that have both."""
    found = []
    for claim, measure in MEASURES.items():
        tables = [_ranks(evidence, task, measure) for task in evidence.tasks]
        known = [each for each in tables if each.shape[1] > 1]
        if known:
            found.append(_judge(claim, known))
    return found


def _ranks(
    evidence: Evidence, task: str, measure: Callable[[Mapping[str, Any]], list[float]]
) -> NDArray[np.float64]:
    """Return [2, variants]: ranks of the measure and of the change, about their mean."""
    pairs = []
    for variant in evidence.others:
        changes = evidence.pairs(task, variant)
        runs = evidence.runs.get((task, variant), {})
        values = [v for seed in changes if (v := _value(runs[seed], measure)) is not None]
        if values:
            pairs.append((mean(values), mean(list(changes.values()))))
    columns = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    ranks = np.stack([_average_ranks(each) for each in columns])
    return ranks - ranks.mean(axis=1, keepdims=True) if ranks.size else np.zeros((2, 0))


def _average_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rank numbers from 1 on, equal ones alike; scipy.stats takes a second to import."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return middles[group]


def _value(record: Record, measure: Callable[[Mapping[str, Any]], list[float]]) -> float | None:
    try:
        values = [float(each) for each in measure(read_probe(record).value) if each is not None]
    except (KeyError, TypeError, AttributeError):
        return None
    return mean(values) if values else None


def _judge(claim: str, tables: list[NDArray[np.float64]]) -> Diagnostic:
    size = np.sqrt(np.prod([sum((table[k] ** 2).sum() for table in tables) for k in (0, 1)]))
    seen = float(sum(table[0] @ table[1] for table in tables))
    orders = _orders(tuple(table.shape[1] for table in tables))
    drawn = sum(table[1][order] @ table[0] for table, order in zip(tables, orders, strict=True))
    beyond = int(np.count_nonzero(np.abs(drawn) >= abs(seen) - 1e-9))
    return Diagnostic(
        claim,
        seen / size if size else 0.0,
        (1 + beyond) / (1 + DRAWS),
        max(2 / math.prod(math.factorial(table.shape[1]) for table in tables), 1 / (1 + DRAWS)),
        sum(table.shape[1] for table in tables),
    )


@lru_cache(maxsize=2)
def _orders(sizes: tuple[int, ...]) -> list[NDArray[np.intp]]:
    """Draw the orders of the variants of each task, [draws, variants]: all measures share them."""
    random = np.random.default_rng(0)
    drawn = [[random.permutation(size) for size in sizes] for _ in range(DRAWS)]
    return [np.stack(each) for each in zip(*drawn, strict=True)]

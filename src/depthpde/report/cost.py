"""What a variant costs against the baseline: parameters, time, tokens a second, memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from depthpde.experiments.record import Record
from depthpde.report.evidence import Evidence
from depthpde.report.spelling import plain, spell_size
from depthpde.report.table import Entry, Table

COSTS = {
    "parameters": "parameters",
    "seconds": "time",
    "tokens_per_second": "tokens / s",
    "peak_memory_bytes": "memory",
}
"""What the records tell, and the heads of its columns."""


def cost_ratio(evidence: Evidence, variant: str, cost: str) -> tuple[float, int] | None:
    """Return the geometric mean of variant / baseline over tasks and seeds, and how many pairs.

    Args:
        evidence: The runs.
        variant: Which one.
        cost: A key of `COSTS`.
    """
    logs = []
    for task in evidence.tasks:
        ours = evidence.runs.get((task, variant), {})
        theirs = evidence.runs.get((task, evidence.baseline), {})
        for seed in sorted(set(ours) & set(theirs)):
            a, b = _cost(ours[seed], cost), _cost(theirs[seed], cost)
            if a and b:
                logs.append(math.log(a / b))
    return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else None


def cost_table(evidence: Evidence) -> Table:
    """Tabulate the baseline's costs, and each variant's as a multiple of them."""
    first = [_absolute(evidence, cost) for cost in COSTS]
    rows = [(Entry(plain(evidence.baseline)), *first)]
    tidy: list[Mapping[str, object]] = []
    for variant in evidence.others:
        entries = [Entry(plain(variant))]
        for cost in COSTS:
            found = cost_ratio(evidence, variant, cost)
            if found is None:
                entries.append(Entry("…"))
                continue
            ratio, n = found
            entries.append(Entry(f"×{ratio:.3f}", f"geometric mean of {n} pairs", ("", variant)))
            tidy.append({"variant": variant, "cost": cost, "ratio": ratio, "n": n})
        rows.append(tuple(entries))
    return Table(
        title=f"{evidence.name} · cost of a whole run against the baseline's",
        heads=("", *COSTS.values()),
        rows=tuple(rows),
        notes=(
            "Pairs of one task and seed; runs that shared a machine with others disturb time. "
            "Memory is the largest of the process that ran it, the runs before it included.",
        ),
        tidy=tuple(tidy),
    )


def _absolute(evidence: Evidence, cost: str) -> Entry:
    known = [_cost(each, cost) for each in evidence.records(evidence.baseline)]
    values = [each for each in known if each]
    if not values:
        return Entry("…")
    unit = {"seconds": " s", "peak_memory_bytes": "B"}.get(cost, "")
    size = spell_size(sum(values) / len(values))
    return Entry(f"{size}{unit}", f"mean of {len(values)} runs", ("", evidence.baseline))


def _cost(record: Record, cost: str) -> float | None:
    value = (record.result or {}).get(cost)
    known = isinstance(value, int | float) and math.isfinite(value) and value > 0
    return float(value) if known else None  # type: ignore[arg-type]

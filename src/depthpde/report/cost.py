"""What a variant costs against the baseline: parameters, time, tokens a second, memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from depthpde.pages.formatting import counted, format_size, plain
from depthpde.pages.table import Table, TableEntry
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record

COSTS = {
    "parameters": "parameters",
    "seconds": "time",
    "tokens_per_second": "tokens / s",
    "peak_memory_bytes": "memory",
}
"""What the records tell, and the heads of its columns."""
_CARE = (
    "runs that shared a machine with others disturb time. "
    "Memory is the largest of the process that ran it, the runs before it included."
)


def cost_ratio(evidence: Evidence, variant: str, cost: str) -> tuple[float, int] | None:
    """Return the geometric mean of variant / baseline over tasks and seeds, and how many pairs.

    Args:
        evidence: The runs.
        variant: Which one.
        cost: A key of `COSTS`.
    """
    return _ratio(_costs(evidence, variant, cost), _costs(evidence, evidence.baseline, cost))


def _costs(evidence: Evidence, variant: str, cost: str) -> dict[tuple[str, int], float]:
    """Return the known costs of a variant's runs by task and seed."""
    return {
        (task, seed): value
        for task in evidence.tasks
        for seed, run in sorted(evidence.runs.get((task, variant), {}).items())
        if (value := _cost(run, cost))
    }


def _ratio(
    ours: Mapping[tuple[str, int], float], theirs: Mapping[tuple[str, int], float]
) -> tuple[float, int] | None:
    logs = [math.log(each / theirs[pair]) for pair, each in ours.items() if pair in theirs]
    return (math.exp(sum(logs) / len(logs)), len(logs)) if logs else None


def cost_table(evidence: Evidence) -> Table:
    """Tabulate the baseline's costs, and each variant's as a multiple of them.

    Without any baseline each variant's own costs are shown.
    """
    if not evidence.has_baseline:
        return _alone(evidence)
    rows = [_absolute(evidence, evidence.baseline)]
    baseline = {cost: _costs(evidence, evidence.baseline, cost) for cost in COSTS}
    tidy: list[Mapping[str, object]] = []
    for variant in evidence.others:
        entries = [TableEntry(plain(variant))]
        for cost in COSTS:
            found = _ratio(_costs(evidence, variant, cost), baseline[cost])
            if found is None:
                entries.append(TableEntry("…"))
                continue
            ratio, n = found
            entries.append(
                TableEntry(f"×{ratio:.3f}", f"geometric mean of {n} pairs", ("", variant))
            )
            tidy.append({"variant": variant, "cost": cost, "ratio": ratio, "n": n})
        rows.append(tuple(entries))
    return Table(
        title=f"{evidence.name} · cost of a whole run against the baseline's",
        heads=("", *COSTS.values()),
        rows=tuple(rows),
        notes=(f"Pairs of one task and seed; {_CARE}",),
        tidy=tuple(tidy),
    )


def _alone(evidence: Evidence) -> Table:
    return Table(
        title=f"{evidence.name} · cost of a whole run",
        heads=("", *COSTS.values()),
        rows=tuple(_absolute(evidence, variant) for variant in evidence.others),
        notes=(f"Means over tasks and seeds; {_CARE}",),
    )


def _absolute(evidence: Evidence, variant: str) -> tuple[TableEntry, ...]:
    """Return a row of a variant's own costs."""
    entries = [TableEntry(plain(variant))]
    for cost in COSTS:
        known = [_cost(each, cost) for each in evidence.records(variant)]
        values = [each for each in known if each]
        if not values:
            entries.append(TableEntry("…"))
            continue
        unit = {"seconds": " s", "peak_memory_bytes": "B"}.get(cost, "")
        size = format_size(sum(values) / len(values))
        words = f"mean of {counted(len(values), 'run')}"
        entries.append(TableEntry(f"{size}{unit}", words, ("", variant)))
    return tuple(entries)


def _cost(record: Record, cost: str) -> float | None:
    value = (record.result or {}).get(cost)
    known = isinstance(value, int | float) and math.isfinite(value) and value > 0
    return float(value) if known else None  # type: ignore[arg-type]

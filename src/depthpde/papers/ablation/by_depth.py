"""What paper B reads layer by layer, from the records of trained runs alone.

cosine to the input, plain and centred · cosine between tokens                   by depth
gradient of the stream · attention from block to block                           by depth
largest gradient norm, divergences                                               by variant
Cohen's κ of the answers of Transformer and simulator, both lacking the same     by stabilizer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from depthpde.pages.formatting import plain
from depthpde.papers.ablation.variants import SIMULATOR, STABILIZERS, TRANSFORMER, label
from depthpde.papers.extra_tables import Rows
from depthpde.records.evidence import Evidence, score
from depthpde.records.predictions import agreements
from depthpde.records.probes import read_probe
from depthpde.records.record import Record, State
from depthpde.records.statistics.paired import mean

ATTENTION = "attention from block to block, mean KL in nats"
COSINE = "cosine to the input, by depth"
CENTRED = "centred cosine to the input, by depth"
TOKENS = "cosine between tokens, by depth"
GRADIENT = "gradient of the stream, by depth"
LIKE = "answers of Transformer and simulator alike, both lacking the same (Cohen's κ)"
TRAINING = "in training"
MEASURES = {
    COSINE: "drift.cosine",
    CENTRED: "drift.centred_cosine",
    TOKENS: "rank.token_cosine",
    GRADIENT: "gradient.stream",
    ATTENTION: "attention.step_kl",
}
"""Title of a table → what a probe calls the measure. What all tokens share hides in a plain cosine
what is left of each, so that the centred one stands beside it."""


def layer_tables(evidence: Evidence) -> dict[str, Rows]:
    """Return every table that the records of an ablation can fill, title → rows.

    Args:
        evidence: Runs of the Transformer and its simulator, named by `label`.
    """
    tables = {title: depth_table(evidence, title) for title in MEASURES}
    tables |= {TRAINING: training_table(evidence), LIKE: likeness_table(evidence)}
    return {title: rows for title, rows in tables.items() if rows}


def depth_table(evidence: Evidence, title: str) -> Rows:
    """Lay out one measure by depth: its mean over the runs whose probes hold all of it.

    Paper B names a cosine that falls, gradients that vanish or grow, and a divergence of attention
    that grows without bound as the signs of a missing stabilizer. Variants whose probes hold
    nothing are left out: those of the simulators of `stabilization` hold no attention.

    Args:
        evidence: The runs.
        title: One of `MEASURES`.
    """
    rows: Rows = []
    for variant in evidence.variants:
        series = [
            values
            for run in evidence.records(variant)
            if (values := _by_depth(run, MEASURES[title])) and None not in values
        ]
        if series:
            means = [mean(list(each)) for each in zip(*series, strict=True)]
            rows.append(
                {"variant": plain(variant), "runs": str(len(series))}
                | {
                    f"{k} → {k + 1}" if title == ATTENTION else str(k): _number(value)
                    for k, value in enumerate(means, start=int(title == ATTENTION))
                }
            )
    return rows


def training_table(evidence: Evidence) -> Rows:
    """Tell by variant how training went: accuracy, divergences, the largest gradient norm logged.

    What made a run diverge is not among the logged updates; a diverged run counts as the largest
    class.

    Args:
        evidence: The runs.
    """
    rows: Rows = []
    for variant in evidence.variants:
        runs = evidence.records(variant)
        reached = [value for each in runs if (value := score(each)) is not None]
        if not reached:
            continue
        norms = [max(found) for each in runs if (found := _gradient_norms(each))]
        rows.append(
            {
                "variant": plain(variant),
                "accuracy": f"{mean(reached):.1f}",
                "diverged": f"{sum(each.state is State.DIVERGED for each in runs)} of {len(runs)}",
                "largest gradient norm, median": _number(median(norms)) if norms else "–",
                "worst": _number(max(norms)) if norms else "–",
            }
        )
    return rows


def likeness(evidence: Evidence) -> dict[str, dict[str, dict[int, float]]]:
    """Return how alike the two systems answer, like with like: stabilizer → task → seed → κ.

    Args:
        evidence: Runs of both systems, named by `label`.
    """
    predicted = {
        variant: {
            task: {
                seed: classes
                for seed, run in evidence.runs.get((task, variant), {}).items()
                if (classes := run.predictions()) is not None
            }
            for task in evidence.tasks
        }
        for variant in evidence.variants
    }
    pairs = {name: (label(TRANSFORMER, name), label(SIMULATOR, name)) for name in STABILIZERS}
    return {
        name: agreements(predicted[ours], predicted[theirs])
        for name, (ours, theirs) in pairs.items()
        if ours in predicted and theirs in predicted
    }


def likeness_table(evidence: Evidence) -> Rows:
    """Lay out `likeness`: mean and range over tasks and seeds.

    Args:
        evidence: Runs of both systems, named by `label`.
    """
    found = {
        name: [value for runs in tasks.values() for value in runs.values()]
        for name, tasks in likeness(evidence).items()
    }
    return [
        {
            "both systems with": name,
            "pairs": str(len(values)),
            "mean κ": f"{mean(values):.2f}",
            "from … to": f"{min(values):.2f} … {max(values):.2f}",
        }
        for name, values in found.items()
        if values
    ]


def _by_depth(run: Record, measure: str) -> Sequence[float | None]:
    depth = read_probe(run).value.get("depth")
    values = depth.get(measure) if isinstance(depth, Mapping) else None
    return values if isinstance(values, list) else []


def _gradient_norms(run: Record) -> list[float]:
    return [float(each["gradient_norm"]) for each in run.points()]


def _number(value: float) -> str:
    """Spell a number of any size: three decimals, or a power where they would tell nothing."""
    return f"{value:.3f}" if value == 0 or 1e-3 <= abs(value) < 1e3 else f"{value:.1e}"

"""Does a Transformer have a continuous limit as its depth grows?

The weights of a trained Transformer are a function of depth time, linear between its blocks. A
network of L blocks over the same depth time takes L steps of dt = T / L with the weights it finds
there:

    u_{k+1} = u_k + dt (A + R)(u_k; θ(t_k)),    t_k = k T / L,    L = 4 … 64

and is compared with the solution of the equation at four times. Without residuals there is no dt to
shrink, u_{k+1} = F(u_k), and the same comparison shows what is missing.
"""

from __future__ import annotations

from typing import Any

from depthpde.papers.ablation.variants import (
    BOTH,
    NO_RESIDUAL,
    SEEDS,
    TRANSFORMER,
    label,
    shape,
    variants,
    weights_of,
)
from depthpde.papers.claims import measured_claim, order_claim, spread
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.stabilization import TASKS
from depthpde.records.findings import JudgedClaim
from depthpde.records.record import State
from depthpde.sweeps.scale import Scale
from depthpde.threads import one_thread

DEPTHS = (4, 8, 16, 32, 64)
"""Blocks of the networks compared."""
EXAMPLES = {Scale.QUICK: 4, Scale.MINI: 16, Scale.FULL: 32}
STANDARD, WITHOUT = label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_RESIDUAL)


def conclude(case: Case) -> Conclusion:
    """Bring every run's Transformer near its limit by depth, and judge."""
    from depthpde.papers.measurements.depth import measure

    _, folders = weights_of(case)
    rows = []
    for (task, variant, seed), record in case.records.items():
        if record.state is State.DIVERGED:
            continue
        case.log(f"depths of {task}, {variant}, seed {seed}")
        with one_thread():
            measured = measure(record, folders, EXAMPLES[Scale(case.scale)], DEPTHS)
        rows += [{"task": task, "variant": variant} | each for each in measured]
    return Conclusion(
        claims=claims(rows),
        tables={"relative distance from the limit, by depth": table(rows)},
        notes=(
            "weights are linear in depth time between trained blocks, and constant after the last",
            "without residuals there is no limit to compare with: the distance is that between "
            "depth L and depth 2L",
        ),
    )


def claims(rows: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge whether depth converges, how fast, and what happens without residuals."""
    second = order_claim(
        "Macaron Net: halves around a whole make the block a second-order step",
        "the distance shrinks with depth to the power {mean:.2f}",
        _orders(rows, "strang", "trained"),
        wanted=2.0,
        within=0.4,
    )
    apart: dict[str, list[float]] = {}
    for row in rows:
        if row["variant"] == WITHOUT and row["weights"] == "trained":
            apart.setdefault(row["task"], []).append(row["errors"][-1])
    control = measured_claim(
        "Control: without residuals depth has no continuous limit",
        f"depth {2 * DEPTHS[-1]} ends {{mean:.2f}} away from depth {DEPTHS[-1]}, relative to its "
        "size; no limit counts from 0.1",
        apart,
        mark=0.1,
    )
    return [*convergence_claims(rows), second, control]


def convergence_claims(rows: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge whether a deeper Transformer comes nearer to its limit, trained and untrained."""
    return [
        order_claim(
            f"Paper B's readers: a deeper Transformer converges to a continuous limit ({weights} "
            "weights)",
            "the distance from the solution shrinks with depth to the power {mean:.2f} (1 is the "
            "order of a block as a step)",
            _orders(rows, "lie", weights),
            wanted=1.0,
        )
        for weights in ("trained", "untrained")
    ]


def table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lay out the distance by depth, over tasks and seeds."""
    keys = dict.fromkeys((r["variant"], r["method"], r["weights"]) for r in rows)
    found = []
    for variant, method, weights in keys:
        same = [r for r in rows if (r["variant"], r["method"], r["weights"]) ==
                (variant, method, weights)]  # fmt: skip
        at = {"variant": variant, "step": method, "weights": weights}
        depths = {f"L = {d}": spread([r["errors"][k] for r in same]) for k, d in enumerate(DEPTHS)}
        found.append(at | depths | {"order": spread([r["order"] for r in same])})
    return found


def _orders(rows: list[dict[str, Any]], method: str, weights: str) -> dict[str, list[float]]:
    """Return the measured orders by task."""
    wanted = (STANDARD, method, weights)
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["variant"], row["method"], row["weights"]) == wanted:
            found.setdefault(row["task"], []).append(row["order"])
    return found


EXPERIMENT = Experiment(
    name="depth_limit",
    question="Does a Transformer have a continuous limit as its depth grows at fixed depth time?",
    judged_by=JudgedBy.WEIGHTS,
    variants=tuple(each for each in variants() if each.label in (STANDARD, WITHOUT)),
    tasks=TASKS.__getitem__,
    bases=shape,
    seeds=SEEDS,
    fixed_tasks=True,
    conclude=conclude,
)
"""Its runs are those of `stabilization`, with the same records."""

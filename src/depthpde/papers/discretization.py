"""Do schemes and step sizes matter to what a Transformer computes?

The equation of a trained Transformer's own weights is integrated by every scheme with 1 to 16 steps
a block, and by methods that choose their steps over several tolerances; each is compared with the
accurate solution, whose own error is stated, and with the Transformer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from depthpde.papers.ablation.variants import (
    BOTH,
    SEEDS,
    TRANSFORMER,
    label,
    shape,
    variants,
    weights_of,
)
from depthpde.papers.claims import measured_claim, order_claim, slope, spread
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.stabilization import TASKS
from depthpde.records.evidence import Evidence
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.record import State
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.scale import Scale
from depthpde.threads import one_thread

if TYPE_CHECKING:
    from depthpde.simulator.integrator import Integrator

STEPS = (1, 2, 4, 8, 16)
"""Steps of one block."""
FAITHFUL = "Paper B: the forward pass is a faithful discretization of its PDE"
KEPT = "Paper B's readers: what is predicted does not hang on scheme and step"
POOLED = "measured with weights that are not kept: intervals pool the tasks"
STIFF = 2.0
"""A diffusivity four times beyond what one explicit step a block can bear."""
EXAMPLES = {Scale.QUICK: 8, Scale.MINI: 16, Scale.FULL: 64}


def conclude(case: Case) -> Conclusion:
    """Integrate every run's Transformer by every scheme, and judge."""
    from depthpde.papers.measurements.schemes import (
        accurate,
        load,
        roughening,
        schemes,
        tolerances,
    )

    _, folders = weights_of(case)
    rows: list[dict[str, Any]] = []
    chosen: list[dict[str, Any]] = []
    stiff: list[dict[str, Any]] = []
    for (task, _, seed), record in case.records.items():
        if record.state is State.DIVERGED:
            continue
        case.log(f"schemes of {task}, seed {seed}")
        model, batch = load(record, folders, EXAMPLES[Scale(case.scale)])
        at = {"task": task, "seed": seed}
        with one_thread():
            exact = accurate(model, batch)
            rows += [at | each for each in schemes(model, batch, STEPS, exact)]
            chosen += [at | each for each in tolerances(model, batch, exact)]
            stiff.append(at | roughening(model, batch, STIFF))
    return Conclusion(
        claims=claims(rows, stiff),
        tables={
            "relative distance from the exact solution, and predictions kept": table(rows),
            f"growth of roughness under diffusion α = {STIFF:g}, dt = 1": stiff_table(stiff),
            "methods that choose their steps: distance from the accurate solution": (
                tolerance_table(chosen)
            ),
        },
        notes=(
            "the accurate solution is that of two methods; they differ by at most "
            f"{max((row['error of the accurate solution'] for row in chosen), default=0.0):.1e}",
            "weights are constant within a block, so the equation is the Transformer's own",
            "backward_euler is implicit in diffusion alone, which a Transformer has none of: but "
            "for the growth of roughness it is euler",
        ),
    )


def claims(rows: list[dict[str, Any]], stiff: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge orders, faithfulness and stability."""
    found = [_order_claim(rows, method) for method in _methods()]
    forward = [row for row in rows if (row["method"], row["steps"]) == ("lie", 1)]
    own = [row["error"] for row in forward]
    found.append(
        measured_claim(
            FAITHFUL,
            f"the Transformer ends at a relative distance of {spread(own)} from the exact solution "
            "of its equation; one less that distance, {mean:.2f}, counts from 0.9",
            _by_task(forward, lambda row: 1 - row["error"]),
            mark=0.9,
        )
    )
    found.append(
        measured_claim(
            KEPT,
            "the exact solution of the equation keeps {mean:.2f} of the Transformer's own "
            "predictions; counts from 0.95, as nothing below a half",
            _by_task(forward, lambda row: row["kept by the exact solution"]),
            mark=0.95,
            zero=0.5,
        )
    )
    found.append(
        measured_claim(
            "Theory: beyond r = 1/2 an explicit step roughens, an implicit one does not",
            "so in a share of {mean:.2f} of the runs with α = 2 and dt = 1",
            _by_task(
                stiff,
                lambda row: float(_bounded(row["backward_euler"]) and not _bounded(row["euler"])),
            ),
            mark=0.99,
        )
    )
    return found


def rejudge(stored: Findings, evidence: Evidence | None) -> Findings:
    """Judge by the stored intervals what a half means: weights are not kept."""

    def judged(claim: JudgedClaim) -> JudgedClaim:
        low_high = claim.interval
        if claim.claim == KEPT and low_high is not None and low_high[1] < 0.5:
            return replace(claim, verdict=Outcome.CONTRADICTED)
        if claim.claim == FAITHFUL and low_high is not None and low_high[1] < 0.9:
            words = "the claimed 0.9 is excluded, the side of 0 is open"
            return replace(claim, finding=f"{claim.finding}; {words}")
        return claim

    notes = tuple(dict.fromkeys((*stored.notes, POOLED)))
    return replace(stored, claims=tuple(map(judged, stored.claims)), notes=notes)


def table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lay out the distance and the predictions kept, scheme by scheme."""
    found = []
    for method in _methods():
        mine = [row for row in rows if row["method"] == method.value]
        at: dict[str, Any] = {"scheme": method.value}
        for steps in STEPS:
            same = [row for row in mine if row["steps"] == steps]
            at[f"dt = 1/{steps}"] = spread([row["error"] for row in same])
        at["kept at dt = 1"] = spread([row["kept"] for row in mine if row["steps"] == 1])
        at["order"] = spread([each for runs in _orders(rows, method).values() for each in runs])
        found.append(at)
    return found


def tolerance_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lay out distance and evaluations of attention, method by method and tolerance."""
    settings = dict.fromkeys((row["method"], row["rtol"]) for row in rows)
    found = []
    for method, rtol in settings:
        same = [row for row in rows if (row["method"], row["rtol"]) == (method, rtol)]
        found.append(
            {
                "method": method,
                "rtol": f"{rtol:g}",
                "evaluations of attention": spread([row["evaluations"] for row in same]),
                "distance": f"{sum(row['error'] for row in same) / len(same):.1e}",
                "predictions kept": spread([row["kept"] for row in same]),
            }
        )
    return found


def stiff_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lay out the growth of roughness, scheme by scheme."""
    return [
        {
            "scheme": method.value,
            "log10 energy ratio": spread([row[method.value] for row in rows]),
            "blown up": f"{sum(row[method.value] is None for row in rows)}/{len(rows)}",
        }
        for method in _methods()
    ]


def _order_claim(rows: list[dict[str, Any]], method: Integrator) -> JudgedClaim:
    return order_claim(
        f"Numerics: {method.value} keeps its order on a trained Transformer",
        f"order {{mean:.2f}} between dt = 1/{STEPS[-2]} and 1/{STEPS[-1]}, declared {method.order}",
        _orders(rows, method),
        wanted=float(method.order),
        within=0.25 * method.order,
    )


def _by_task(
    rows: list[dict[str, Any]], value: Callable[[dict[str, Any]], float]
) -> dict[str, list[float]]:
    """Return a number of each row, by task."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["task"], []).append(value(row))
    return found


def _orders(rows: list[dict[str, Any]], method: Integrator) -> dict[str, list[float]]:
    """Return the measured orders of a scheme, by task."""
    runs = dict.fromkeys((row["task"], row["seed"]) for row in rows)
    found: dict[str, list[float]] = {}
    for run in runs:
        errors = {
            row["steps"]: row["error"]
            for row in rows
            if (row["task"], row["seed"]) == run and row["method"] == method.value
        }
        order = slope(STEPS[-2:], [errors[steps] for steps in STEPS[-2:]])
        found.setdefault(run[0], []).append(order)
    return found


def _methods() -> list[Integrator]:
    from depthpde.simulator.integrator import Integrator

    return list(Integrator)


def _bounded(growth: float | None) -> bool:
    """Whether roughness grew by less than what the block itself may add."""
    return growth is not None and growth < 2.0


EXPERIMENT = Experiment(
    name="discretization",
    question="Do schemes and step sizes matter to what a Transformer computes?",
    judged_by=JudgedBy.WEIGHTS,
    variants=tuple(each for each in variants() if each.label == label(TRANSFORMER, BOTH)),
    tasks=TASKS.__getitem__,
    bases=shape,
    seeds=SEEDS,
    fixed_tasks=True,
    conclude=conclude,
    rejudge=rejudge,
)
"""Its runs are those of `stabilization`, with the same records."""

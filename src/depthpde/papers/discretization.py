"""Do schemes and step sizes matter to what a Transformer computes?

The equation of a trained Transformer's own weights is integrated by every scheme with 1 to 16 steps
a block, and compared with its fine solution and with the Transformer itself.
"""

from __future__ import annotations

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
from depthpde.papers.experiment import Case, Conclusion, Experiment, JudgedBy
from depthpde.papers.judgement import judge, judge_order, slope, spread
from depthpde.papers.stabilization import TASKS
from depthpde.records.findings import JudgedClaim
from depthpde.records.record import State
from depthpde.sweeps.scale import Scale
from depthpde.threads import one_thread

if TYPE_CHECKING:
    from depthpde.simulator.integrator import Integrator

STEPS = (1, 2, 4, 8, 16)
"""Steps of one block."""
STIFF = 2.0
"""A diffusivity four times beyond what one explicit step a block can bear."""
EXAMPLES = {Scale.QUICK: 8, Scale.MINI: 16, Scale.FULL: 64}


def conclude(case: Case) -> Conclusion:
    """Integrate every run's Transformer by every scheme, and judge."""
    from depthpde.papers.measurements.schemes import load, roughening, schemes

    _, folders = weights_of(case)
    rows: list[dict[str, Any]] = []
    stiff: list[dict[str, Any]] = []
    for (task, _, seed), record in case.records.items():
        if record.state is State.DIVERGED:
            continue
        case.log(f"schemes of {task}, seed {seed}")
        model, batch = load(record, folders, EXAMPLES[Scale(case.scale)])
        at = {"task": task, "seed": seed}
        with one_thread():
            rows += [at | each for each in schemes(model, batch, STEPS)]
            stiff.append(at | roughening(model, batch, STIFF))
    return Conclusion(
        claims=claims(rows, stiff),
        tables={
            "relative distance from the exact solution, and predictions kept": table(rows),
            f"growth of roughness under diffusion α = {STIFF:g}, dt = 1": stiff_table(stiff),
        },
        notes=(
            "weights are constant within a block, so the equation is the Transformer's own",
            "backward_euler is implicit in diffusion alone, which a Transformer has none of: but "
            "for the growth of roughness it is euler",
        ),
    )


def claims(rows: list[dict[str, Any]], stiff: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge orders, faithfulness and stability."""
    found = [_order_claim(rows, method) for method in _methods()]
    own = [row["error"] for row in rows if (row["method"], row["steps"]) == ("lie", 1)]
    found.append(
        judge(
            "Paper B: the forward pass is a faithful discretization of its PDE",
            f"the Transformer ends at a relative distance of {spread(own)} from the exact solution "
            "of its equation; one less that distance, {mean:.2f}, counts from 0.9",
            [1 - each for each in own],
            above=0.9,
            test=False,
        )
    )
    exact = [
        row["kept by the exact solution"]
        for row in rows
        if (row["method"], row["steps"]) == ("lie", 1)
    ]
    found.append(
        judge(
            "Paper B's readers: what is predicted does not hang on scheme and step",
            "the exact solution of the equation keeps {mean:.2f} of the Transformer's own "
            "predictions; counts from 0.95, partly from a half",
            exact,
            above=0.95,
            partly=0.5,
            test=False,
        )
    )
    safe = [float(_bounded(row["backward_euler"]) and not _bounded(row["euler"])) for row in stiff]
    found.append(
        judge(
            "Theory: beyond r = 1/2 an explicit step roughens, an implicit one does not",
            "so in a share of {mean:.2f} of the runs with α = 2 and dt = 1",
            safe,
            above=0.99,
            test=False,
        )
    )
    return found


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
        at["order"] = spread(_orders(rows, method))
        found.append(at)
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
    return judge_order(
        f"Numerics: {method.value} keeps its order on a trained Transformer",
        f"order {{mean:.2f}} between dt = 1/{STEPS[-2]} and 1/{STEPS[-1]}, declared {method.order}",
        _orders(rows, method),
        wanted=float(method.order),
        within=0.25 * method.order,
    )


def _orders(rows: list[dict[str, Any]], method: Integrator) -> list[float]:
    runs = dict.fromkeys((row["task"], row["seed"]) for row in rows)
    found = []
    for run in runs:
        errors = {
            row["steps"]: row["error"]
            for row in rows
            if (row["task"], row["seed"]) == run and row["method"] == method.value
        }
        found.append(slope(STEPS[-2:], [errors[steps] for steps in STEPS[-2:]]))
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
)
"""Its runs are those of `stabilization`, with the same records."""

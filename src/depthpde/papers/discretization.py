"""Do schemes and step sizes matter to what a Transformer computes?

The equation of a trained Transformer's own weights is integrated by every scheme with 1 to 16 steps
a block, and compared with its fine solution and with the Transformer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from depthpde.data.batching import Batch
from depthpde.models.pretrained import Pretrained
from depthpde.operators.boundary import open_edges
from depthpde.operators.energy import dirichlet_energy
from depthpde.papers.ablation import (
    BOTH,
    SEEDS,
    TRANSFORMER,
    ablation_plan,
    compute,
    label,
    shape,
)
from depthpde.papers.experiment import Experiment, Log
from depthpde.papers.judgement import judge, judge_order, slope, spread
from depthpde.papers.observation import first_batch, one_thread, split_of, trained_model
from depthpde.papers.stabilization import TASKS
from depthpde.records.findings import Findings, JudgedClaim
from depthpde.records.record import Record, State
from depthpde.runs.run import RunConfig
from depthpde.shapes import Field
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.learned import Simulator
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.solvers.integrate import BlowUpError
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale
from depthpde.training.evaluate import model_inputs, predict

NAME = "discretization"
QUESTION = "Do schemes and step sizes matter to what a Transformer computes?"
STEPS = (1, 2, 4, 8, 16)
"""Steps of one block."""
FINE = 48
"""Fourth-order steps of one block that stand for the exact solution."""
STIFF = 2.0
"""A diffusivity four times beyond what one explicit step a block can bear."""
EXAMPLES = {Scale.QUICK: 8, Scale.MINI: 16, Scale.FULL: 64}


def plan(scale: Scale = Scale.MINI, *, seeds: int | Sequence[int] | None = None) -> Plan:
    """Return the runs whose weights are taken: those of `stabilization`, with the same records."""
    whole = ablation_plan(
        NAME,
        QUESTION,
        shape(scale, TASKS[scale]),
        seeds=seeds or SEEDS[scale],
        systems=(TRANSFORMER,),
    )
    standard = label(TRANSFORMER, BOTH)
    return replace(whole, variants=[each for each in whole.variants if each.label == standard])


def answer(
    made: Plan, folders: Folders, scale: Scale, *, workers: int, log: Log, device: str = "cpu"
) -> Findings:
    """Answer the question by the runs of a plan."""
    records = compute(made, folders, workers=workers, log=log, device=device)
    rows: list[dict[str, Any]] = []
    stiff: list[dict[str, Any]] = []
    for (task, _, seed), record in records.items():
        if record.state is State.DIVERGED:
            continue
        log(f"schemes of {task}, seed {seed}")
        model, batch = _load(record, folders, EXAMPLES[scale])
        at = {"task": task, "seed": seed}
        with one_thread():
            rows += [at | each for each in schemes(model, batch)]
            stiff.append(at | roughening(model, batch))
    findings = Findings(
        name=NAME,
        question=QUESTION,
        scale=scale.value,
        claims=tuple(claims(rows, stiff)),
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
    findings.write(folders.results)
    return findings


reproduce = Experiment(plan, answer)
"""What `depthpde reproduce` calls."""


@torch.no_grad()
def schemes(model: Pretrained, batch: Batch) -> list[dict[str, Any]]:
    """Integrate a Transformer by every scheme and step, and compare.

    Args:
        model: A trained classifier, in float64.
        batch: What it is shown.
    """
    said = predict(model, batch).argmax(dim=-1)
    sites = follow(model, *model_inputs(model, batch))[1]
    exact, exactly = _ends(_simulated(model, Integrator.RK4, FINE), batch)
    target = exact if sites is None else exact[sites]
    kept_exactly = float((exactly == said).double().mean())
    rows = []
    for method in Integrator:
        for steps in STEPS:
            end, classes = _ends(_simulated(model, method, steps), batch)
            final = end if sites is None else end[sites]
            rows.append(
                {
                    "method": method.value,
                    "steps": steps,
                    "error": float((final - target).norm() / target.norm()),
                    "kept": float((classes == said).double().mean()),
                    "kept by the exact solution": kept_exactly,
                }
            )
    return rows


@torch.no_grad()
def roughening(model: Pretrained, batch: Batch) -> dict[str, Any]:
    """Add diffusion beyond the explicit bound, and see what each scheme makes of it.

        log10 of the Dirichlet energy at the end over that at the start; None where it blew up

    Edges between real tokens count; the wall to the padding is none.
    """
    path, sites = follow(model, *model_inputs(model, batch))
    edges = open_edges(path.states[0], valid_mask=sites)
    equation = transcribe(model, diffusion=STIFF)
    found: dict[str, Any] = {}
    for method in Integrator:
        try:
            final = simulate(
                equation, path.states[0], path.times, method=method, valid_mask=sites
            ).final
        except BlowUpError:
            found[method.value] = None
            continue
        energies = [dirichlet_energy(u, edges=edges).sum() for u in (path.states[0], final)]
        found[method.value] = float((energies[1] / energies[0]).log10())
    return found


def claims(rows: list[dict[str, Any]], stiff: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge orders, faithfulness and stability."""
    found = [_order_claim(rows, method) for method in Integrator]
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
    for method in Integrator:
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
        for method in Integrator
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


def _ends(model: Pretrained, batch: Batch) -> tuple[Field, Tensor]:
    """Return the field after the last block and the classes predicted from it, in one pass."""
    ends: list[Field] = []
    last = list(model.encoder.blocks)[-1]
    hook = last.register_forward_hook(lambda block, inputs, output: ends.append(output))
    try:
        said = predict(model, batch).argmax(dim=-1)
    finally:
        hook.remove()
    return ends[0], said


def _simulated(model: Pretrained, method: Integrator, steps: int) -> Simulator:
    return Simulator.from_transformer(model, SimulatorConfig(method=method, steps=steps))


def _load(record: Record, folders: Folders, examples: int) -> tuple[Pretrained, Batch]:
    run = RunConfig.from_dict(record.config)
    return trained_model(record).double(), first_batch(split_of(run, folders), examples)


def _bounded(growth: float | None) -> bool:
    """Whether roughness grew by less than what the block itself may add."""
    return growth is not None and growth < 2.0

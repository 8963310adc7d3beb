"""Does a Transformer have a continuous limit as its depth grows?

The weights of a trained Transformer are a function of depth time, linear between its blocks. A
network of L blocks over the same depth time takes L steps of dt = T / L with the weights it finds
there:

    u_{k+1} = u_k + dt (A + R)(u_k; θ(t_k)),    t_k = k T / L,    L = 4 … 64

and is compared with the solution of the equation at four times. Without residuals there is no dt to
shrink, u_{k+1} = F(u_k), and the same comparison shows what is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from depthpde.models.pretrained import Pretrained
from depthpde.papers.ablation import (
    BOTH,
    NO_RESIDUAL,
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
from depthpde.shapes import Field, Mask
from depthpde.simulator.equation import Equation
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.integrator import plan as arrange
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.grid import Plan
from depthpde.sweeps.scale import Scale
from depthpde.training.evaluate import model_inputs

NAME = "depth_limit"
QUESTION = "Does a Transformer have a continuous limit as its depth grows at fixed depth time?"
DEPTHS = (4, 8, 16, 32, 64)
"""Blocks of the networks compared."""
STOPS = 4
"""Times, evenly spaced, at which trajectories are compared."""
EXAMPLES = {Scale.QUICK: 4, Scale.MINI: 16, Scale.FULL: 32}


def plan(scale: Scale = Scale.MINI, *, seeds: int | Sequence[int] | None = None) -> Plan:
    """Return the runs whose weights are taken: those of `stabilization`, with the same records."""
    whole = ablation_plan(
        NAME,
        QUESTION,
        shape(scale, TASKS[scale]),
        seeds=seeds or SEEDS[scale],
        systems=(TRANSFORMER,),
    )
    wanted = (label(TRANSFORMER, BOTH), label(TRANSFORMER, NO_RESIDUAL))
    return replace(whole, variants=[each for each in whole.variants if each.label in wanted])


def answer(
    made: Plan, folders: Folders, scale: Scale, *, workers: int, log: Log, device: str = "cpu"
) -> Findings:
    """Answer the question by the runs of a plan."""
    records = compute(made, folders, workers=workers, log=log, device=device)
    rows = []
    for (task, variant, seed), record in records.items():
        if record.state is State.DIVERGED:
            continue
        log(f"depths of {task}, {variant}, seed {seed}")
        with one_thread():
            rows += measure(record, folders, EXAMPLES[scale], variant, seed)
    findings = Findings(
        name=NAME,
        question=QUESTION,
        scale=scale.value,
        claims=tuple(claims(rows)),
        tables={"relative distance from the limit, by depth": table(rows)},
        notes=(
            "weights are linear in depth time between trained blocks, and constant after the last",
            "without residuals there is no limit to compare with: the distance is that between "
            "depth L and depth 2L",
        ),
    )
    findings.write(folders.results)
    return findings


reproduce = Experiment(plan, answer)
"""What `depthpde reproduce` calls."""


def measure(
    record: Record, folders: Folders, examples: int, variant: str, seed: int
) -> list[dict[str, Any]]:
    """Measure how depth brings one Transformer near its limit, trained and untrained."""
    run = RunConfig.from_dict(record.config)
    batch = first_batch(split_of(run, folders), examples)
    start = run.build()
    assert isinstance(start, Pretrained), "every run builds one of ours"
    rows = []
    for when, model in (("untrained", start.eval()), ("trained", trained_model(record))):
        path, sites = follow(model.double(), *model_inputs(model, batch))
        equation = transcribe(model, weights="interpolated")
        errors = (
            distances(equation, path.states[0], sites, ("lie", "strang"))
            if run.model.stability.residual
            else {"lie": steps_apart(equation, path.states[0], sites)}
        )
        at = {"task": run.task, "seed": seed, "variant": variant, "weights": when}
        rows += [
            at | {"method": method, "errors": far, "order": _order(far)}
            for method, far in errors.items()
        ]
    return rows


@torch.no_grad()
def distances(
    equation: Equation, u0: Field, sites: Mask | None, methods: Sequence[str]
) -> dict[str, list[float]]:
    """Compare networks of every depth with the solution of their equation, by method.

    max over four times of ‖u_L(t) − u(t)‖ / ‖u(t)‖

    Args:
        equation: With weights interpolated in depth.
        u0: The field before the first block.
        sites: True = real token.
        methods: lie for a Transformer, strang for a second-order one.
    """
    total = float(equation.layers or 1)
    stops = torch.linspace(0, total, STOPS + 1, dtype=torch.float64)
    exact = simulate(
        equation, u0, stops, method="rk4", substeps=max(32, 16 * int(total) // STOPS),
        valid_mask=sites,
    ).states[1:]  # fmt: skip

    def distance(depth: int, method: str) -> float:
        states = network(equation, u0, sites, depth, method)[depth // STOPS :: depth // STOPS]
        return max(_relative(a, b, sites) for a, b in zip(states, exact, strict=True))

    return {method: [distance(depth, method) for depth in DEPTHS] for method in methods}


@torch.no_grad()
def steps_apart(equation: Equation, u0: Field, sites: Mask | None) -> list[float]:
    """Compare networks without residuals of depth L and 2L: u ← F(u), whatever L is."""
    depths = (*DEPTHS, 2 * DEPTHS[-1])
    last = [network(equation, u0, sites, depth, "lie", dt=1.0)[-1] for depth in depths]
    return [_relative(a, b, sites) for a, b in itertools.pairwise(last)]


def network(
    equation: Equation,
    u0: Field,
    sites: Mask | None,
    depth: int,
    method: str,
    *,
    dt: float | None = None,
) -> list[Field]:
    """Run a network of a depth over the equation's depth time, and return its field by block.

    Args:
        equation: With weights interpolated in depth.
        u0: The field before the first block.
        sites: True = real token.
        depth: Number of blocks.
        method: How a block steps.
        dt: The step; depth time / depth unless given.
    """
    total = float(equation.layers or 1)
    arranged = arrange(Integrator(method), equation.terms(u0, valid_mask=sites))
    fields = [u0]
    for block in range(depth):
        fields.append(arranged.step(fields[-1], block * total / depth, dt or total / depth))
    return fields


def claims(rows: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge whether depth converges, how fast, and what happens without residuals."""
    second = judge_order(
        "Macaron Net: halves around a whole make the block a second-order step",
        "the distance shrinks with depth to the power {mean:.2f}",
        _orders(rows, BOTH, "strang", "trained"),
        wanted=2.0,
        within=0.4,
    )
    apart = [
        row["errors"][-1]
        for row in rows
        if row["variant"] == label(TRANSFORMER, NO_RESIDUAL) and row["weights"] == "trained"
    ]
    control = judge(
        "Control: without residuals depth has no continuous limit",
        f"depth {2 * DEPTHS[-1]} ends {{mean:.2f}} away from depth {DEPTHS[-1]}, relative to its "
        "size; no limit counts from 0.1",
        apart,
        above=0.1,
        test=False,
    )
    return [*convergence_claims(rows), second, control]


def convergence_claims(rows: list[dict[str, Any]]) -> list[JudgedClaim]:
    """Judge whether a deeper Transformer comes nearer to its limit, trained and untrained."""
    return [
        judge_order(
            f"Paper B's readers: a deeper Transformer converges to a continuous limit ({weights} "
            "weights)",
            "the distance from the solution shrinks with depth to the power {mean:.2f} (1 is the "
            "order of a block as a step)",
            _orders(rows, BOTH, "lie", weights),
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


def _orders(rows: list[dict[str, Any]], stabilizer: str, method: str, weights: str) -> list[float]:
    wanted = (label(TRANSFORMER, stabilizer), method, weights)
    return [r["order"] for r in rows if (r["variant"], r["method"], r["weights"]) == wanted]


def _order(errors: Sequence[float]) -> float:
    """Fit the slope over the three deepest networks, where it has settled."""
    return slope(DEPTHS[-3:], errors[-3:])


def _relative(u: Tensor, v: Tensor, sites: Mask | None) -> float:
    a, b = (u, v) if sites is None else (u[sites], v[sites])
    return float((a - b).norm() / b.norm())

"""Networks of every depth over the depth time of one Transformer's equation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from depthpde.models.pretrained import Pretrained
from depthpde.papers.claims import slope
from depthpde.papers.measurements.observation import first_batch, split_of, trained_model
from depthpde.records.record import Record
from depthpde.runs.run import RunConfig
from depthpde.shapes import Field, Mask
from depthpde.simulator.equation import Equation
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.integrator import plan as arrange
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.sweeps.executor import Folders
from depthpde.training.evaluate import model_inputs

STOPS = 4
"""Times, evenly spaced, at which trajectories are compared."""


def measure(
    record: Record, folders: Folders, examples: int, depths: Sequence[int]
) -> list[dict[str, Any]]:
    """Measure how depth brings one Transformer near its limit, trained and untrained.

    Args:
        record: The run whose weights are taken.
        folders: Where its data lie.
        examples: How many it is shown.
        depths: Blocks of the networks compared, each a multiple of four.
    """
    run = RunConfig.from_dict(record.config)
    batch = first_batch(split_of(run, folders), examples)
    start = run.build()
    assert isinstance(start, Pretrained), "every run builds one of ours"
    rows = []
    for when, model in (("untrained", start.eval()), ("trained", trained_model(record))):
        path, sites = follow(model.double(), *model_inputs(model, batch))
        equation = transcribe(model, weights="interpolated")
        errors = (
            distances(equation, path.states[0], sites, ("lie", "strang"), depths)
            if run.model.stability.residual
            else {"lie": steps_apart(equation, path.states[0], sites, depths)}
        )
        rows += [
            {"weights": when, "method": method, "errors": far, "order": _order(far, depths)}
            for method, far in errors.items()
        ]
    return rows


@torch.no_grad()
def distances(
    equation: Equation,
    u0: Field,
    sites: Mask | None,
    methods: Sequence[str],
    depths: Sequence[int],
) -> dict[str, list[float]]:
    """Compare networks of every depth with the solution of their equation, by method.

    max over four times of ‖u_L(t) − u(t)‖ / ‖u(t)‖

    Args:
        equation: With weights interpolated in depth.
        u0: The field before the first block.
        sites: True = real token.
        methods: lie for a Transformer, strang for a second-order one.
        depths: Blocks of the networks.
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

    return {method: [distance(depth, method) for depth in depths] for method in methods}


@torch.no_grad()
def steps_apart(
    equation: Equation, u0: Field, sites: Mask | None, depths: Sequence[int]
) -> list[float]:
    """Compare networks without residuals of depth L and 2L: u ← F(u), whatever L is."""
    twice = (*depths, 2 * depths[-1])
    last = [network(equation, u0, sites, depth, "lie", dt=1.0)[-1] for depth in twice]
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


def _order(errors: Sequence[float], depths: Sequence[int]) -> float:
    """Fit the slope over the three deepest networks, where it has settled."""
    return slope(depths[-3:], errors[-3:])


def _relative(u: Tensor, v: Tensor, sites: Mask | None) -> float:
    a, b = (u, v) if sites is None else (u[sites], v[sites])
    return float((a - b).norm() / b.norm())

"""The equation of a Transformer's own weights, integrated by every scheme and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from depthpde.data.batching import Batch
from depthpde.models.pretrained import Pretrained
from depthpde.operators.boundary import open_edges
from depthpde.operators.energy import dirichlet_energy
from depthpde.papers.measurements.observation import first_batch, split_of, trained_model
from depthpde.records.record import Record
from depthpde.runs.run import RunConfig
from depthpde.shapes import Field, Mask
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.equation import Equation
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.learned import Simulator
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.solvers.integrate import BlowUpError
from depthpde.sweeps.executor import Folders
from depthpde.training.evaluate import model_inputs, predict

CHOSEN = ("auto", "bosh3", "dopri5", "tsit5")
"""Methods that choose their steps; a Transformer has no linear term for the others to solve."""
TOLERANCES = (1e-2, 1e-4, 1e-6)
JUDGES = (("auto", 1e-10), ("dopri5", 1e-9))
"""The accurate solution, and a second one by another method: their distance is its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accurate:
    """The accurate solution of a Transformer's own equation on one batch."""

    equation: Equation
    start: Field
    times: tuple[float, float]
    sites: Mask | None
    end: Field
    """The field after the last block."""
    error: float
    """Relative: its distance from the same by another method."""

    def distance(self, end: Field) -> float:
        """Give the relative distance of another end, over real tokens."""
        return _distance(end, self.end, self.sites)


def load(record: Record, folders: Folders, examples: int) -> tuple[Pretrained, Batch]:
    """Return a run's trained model in float64, and what it is shown."""
    run = RunConfig.from_dict(record.config)
    return trained_model(record).double(), first_batch(split_of(run, folders), examples)


@torch.no_grad()
def accurate(model: Pretrained, batch: Batch) -> Accurate:
    """Solve a Transformer's own equation to about ten digits, and say how many are right.

    Args:
        model: A trained model, in float64.
        batch: What it is shown.
    """
    path, sites = follow(model, *model_inputs(model, batch))
    equation, times = transcribe(model), (float(path.times[0]), float(path.times[-1]))
    ends = [
        simulate(
            equation, path.states[0], times, method=method, rtol=rtol, valid_mask=sites, dense=False
        ).final
        for method, rtol in JUDGES
    ]
    return Accurate(
        equation=equation,
        start=path.states[0],
        times=times,
        sites=sites,
        end=ends[0],
        error=_distance(ends[1], ends[0], sites),
    )


@torch.no_grad()
def tolerances(model: Pretrained, batch: Batch, exact: Accurate) -> list[dict[str, Any]]:
    """Integrate a Transformer's equation by every method that chooses its steps, and compare.

    Args:
        model: A trained classifier, in float64.
        batch: What it is shown.
        exact: The accurate solution on it.
    """
    predicted = predict(model, batch).argmax(dim=-1)
    rows = []
    for method in CHOSEN:
        for rtol in TOLERANCES:
            path = simulate(
                exact.equation, exact.start, exact.times, method=method, rtol=rtol,
                valid_mask=exact.sites, dense=False,
            )  # fmt: skip
            classes = _classes(model, batch, path.final)
            rows.append(
                {
                    "method": method,
                    "rtol": rtol,
                    "evaluations": path.statistics.evaluations["interaction"],
                    "error": exact.distance(path.final),
                    "kept": float((classes == predicted).double().mean()),
                    "error of the accurate solution": exact.error,
                }
            )
    return rows


@torch.no_grad()
def schemes(
    model: Pretrained, batch: Batch, numbers: Sequence[int], exact: Accurate
) -> list[dict[str, Any]]:
    """Integrate a Transformer by every scheme and step, and compare.

    Args:
        model: A trained classifier, in float64.
        batch: What it is shown.
        numbers: Steps of one block.
        exact: The accurate solution on it.
    """
    predicted = predict(model, batch).argmax(dim=-1)
    kept_exactly = float((_classes(model, batch, exact.end) == predicted).double().mean())
    rows = []
    for method in Integrator:
        for steps in numbers:
            end, classes = _ends(_simulated(model, method, steps), batch)
            rows.append(
                {
                    "method": method.value,
                    "steps": steps,
                    "error": exact.distance(end),
                    "kept": float((classes == predicted).double().mean()),
                    "kept by the exact solution": kept_exactly,
                }
            )
    return rows


@torch.no_grad()
def roughening(model: Pretrained, batch: Batch, diffusion: float) -> dict[str, Any]:
    """Add diffusion beyond the explicit bound, and see what each scheme makes of it.

        log10 of the Dirichlet energy at the end over that at the start; None where it blew up

    Edges between real tokens count; the wall to the padding is none.
    """
    path, sites = follow(model, *model_inputs(model, batch))
    edges = open_edges(path.states[0], valid_mask=sites)
    equation = transcribe(model, diffusion=diffusion)
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


def _ends(model: Pretrained, batch: Batch) -> tuple[Field, Tensor]:
    """Return the field after the last block and the classes predicted from it, in one pass."""
    ends: list[Field] = []
    last = list(model.encoder.blocks)[-1]
    hook = last.register_forward_hook(lambda block, inputs, output: ends.append(output))
    try:
        predicted = predict(model, batch).argmax(dim=-1)
    finally:
        hook.remove()
    return ends[0], predicted


def _classes(model: Pretrained, batch: Batch, end: Field) -> Tensor:
    """Return the classes that a model predicts from a field put in the place of its last."""
    last = list(model.encoder.blocks)[-1]
    hook = last.register_forward_hook(lambda block, inputs, output: end)
    try:
        return predict(model, batch).argmax(dim=-1)
    finally:
        hook.remove()


def _distance(end: Field, target: Field, sites: Mask | None) -> float:
    ours, theirs = (each if sites is None else each[sites] for each in (end, target))
    return float((ours - theirs).norm() / theirs.norm())


def _simulated(model: Pretrained, method: Integrator, steps: int) -> Simulator:
    return Simulator.from_transformer(model, SimulatorConfig(method=method, steps=steps))

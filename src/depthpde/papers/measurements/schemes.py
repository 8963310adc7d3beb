"""The equation of a Transformer's own weights, integrated by every scheme and step."""

from __future__ import annotations

from collections.abc import Sequence
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
from depthpde.shapes import Field
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.learned import Simulator
from depthpde.simulator.simulate import simulate
from depthpde.simulator.transcribe import follow, transcribe
from depthpde.solvers.integrate import BlowUpError
from depthpde.sweeps.executor import Folders
from depthpde.training.evaluate import model_inputs, predict

FINE = 48
"""Fourth-order steps of one block that stand for the exact solution."""


def load(record: Record, folders: Folders, examples: int) -> tuple[Pretrained, Batch]:
    """Return a run's trained model in float64, and what it is shown."""
    run = RunConfig.from_dict(record.config)
    return trained_model(record).double(), first_batch(split_of(run, folders), examples)


@torch.no_grad()
def schemes(model: Pretrained, batch: Batch, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Integrate a Transformer by every scheme and step, and compare.

    Args:
        model: A trained classifier, in float64.
        batch: What it is shown.
        numbers: Steps of one block.
    """
    said = predict(model, batch).argmax(dim=-1)
    sites = follow(model, *model_inputs(model, batch))[1]
    exact, exactly = _ends(_simulated(model, Integrator.RK4, FINE), batch)
    target = exact if sites is None else exact[sites]
    kept_exactly = float((exactly == said).double().mean())
    rows = []
    for method in Integrator:
        for steps in numbers:
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
        said = predict(model, batch).argmax(dim=-1)
    finally:
        hook.remove()
    return ends[0], said


def _simulated(model: Pretrained, method: Integrator, steps: int) -> Simulator:
    return Simulator.from_transformer(model, SimulatorConfig(method=method, steps=steps))

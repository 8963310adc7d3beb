"""Paper B's ablation with a model as small as can be."""

from __future__ import annotations

from depthpde.models.config import ModelConfig
from depthpde.papers.ablation.variants import SYSTEMS, variants
from depthpde.papers.experiment import Case
from depthpde.records.record import read_record, run_folder
from depthpde.runs.presets import Preset
from depthpde.sweeps.grid import Plan
from depthpde.training.config import TrainingConfig

TINY = Preset(
    model=ModelConfig(dim=8, heads=2, hidden=16, blocks=2),
    training=TrainingConfig(updates=3, batch_size=8, warmup=1, log_every=1),
)


def tiny_plan(seeds=1, systems=tuple(SYSTEMS), labels=None):
    chosen = [each for each in variants(systems) if labels is None or each.label in labels]
    bases = {"listops-mini": TINY}
    return Plan(name="tiny", question="Does it run?", variants=chosen, bases=bases, seeds=seeds)


def case_of(plan, folders, log=lambda line: None):
    """Return the case of a plan whose runs are all recorded."""
    records = {
        (cell.task, cell.variant, cell.seed): read_record(run_folder(folders.results, cell.run))
        for cell, _ in plan.cells
    }
    return Case(scale="quick", records=records, plan=plan, folders=folders, log=log)

"""EXPERIMENTS: every experiment of the papers by name; sweep, reproduce and report read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from depthpde.papers import (
    architectures,
    commutation,
    depth_limit,
    diffusion_variants,
    discretization,
    efficiency,
    multiscale,
    placement,
    positional,
    stabilization,
)
from depthpde.papers.confirmatory import (
    depth_map,
    few_data,
    length,
    locality,
    medium,
    networks,
    noise,
    pathfinder,
    recall,
    resolution,
    rivals,
    schemes,
    six_blocks,
    stencil,
)
from depthpde.papers.confirmatory.conclusion import own_experiment
from depthpde.papers.experiment import Case, Experiment, JudgedBy
from depthpde.records.evidence import Evidence
from depthpde.records.findings import OWN, Findings
from depthpde.records.protocols.steps import TUNING, stage_grid
from depthpde.sweeps.scale import Scale

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        placement.EXPERIMENT,
        multiscale.EXPERIMENT,
        multiscale.BY_POSITION,
        positional.EXPERIMENT,
        diffusion_variants.EXPERIMENT,
        commutation.EXPERIMENT,
        stabilization.EXPERIMENT,
        discretization.EXPERIMENT,
        depth_limit.EXPERIMENT,
        architectures.EXPERIMENT,
        efficiency.EXPERIMENT,
        pathfinder.EXPERIMENT,
        stencil.EXPERIMENT,
        medium.EXPERIMENT,
        noise.EXPERIMENT,
        few_data.EXPERIMENT,
        six_blocks.EXPERIMENT,
        depth_map.EXPERIMENT,
        schemes.EXPERIMENT,
        resolution.EXPERIMENT,
        length.EXPERIMENT,
        recall.EXPERIMENT,
        locality.EXPERIMENT,
        rivals.EXPERIMENT,
        networks.EXPERIMENT,
    )
}
"""Name → experiment."""


def judge_all(grids: Sequence[Evidence], stored: Sequence[Findings]) -> tuple[Findings, ...]:
    """Judge every grid anew whose experiment reads records, beside what others ended in.

    Args:
        grids: The grids of a results folder; one that is no experiment's has no claims, unless a
            protocol of its own says what they are.
        stored: Findings that were read; those of a grid judged here give way to what its runs
            say now.
    """
    scales = {each.name: each.scale for each in stored}
    runs = {each.name: each for each in grids}
    judged = []
    for evidence in grids:
        experiment = experiment_of(evidence)
        if experiment is not None and experiment.judged_by is JudgedBy.RECORDS:
            scale = _scale(experiment, evidence, scales.get(evidence.name))
            tuning = runs.get(stage_grid(evidence.name, TUNING))
            judged.append(experiment.judge(Case(scale=scale, evidence=evidence, tuning=tuning)))
    names = {each.name for each in judged}
    others = [each for each in stored if each.name not in names]
    return (*judged, *(_rejudged(each, runs.get(each.name)) for each in others))


def experiment_of(
    evidence: Evidence, experiments: Mapping[str, Experiment] = EXPERIMENTS
) -> Experiment | None:
    """Return the experiment that judges a grid; None where nothing says what its claims are.

    The one of its name, unless a protocol was laid down for the grid that is not that one's:
    somebody may call a grid of their own as they like.

    Args:
        evidence: The grid.
        experiments: By name.
    """
    experiment, protocol = experiments.get(evidence.name), evidence.protocol
    fixed = None if experiment is None else experiment.protocol
    if protocol is None or (fixed is not None and fixed.digest == protocol.digest):
        return experiment
    return own_experiment(protocol)


def _rejudged(stored: Findings, evidence: Evidence | None) -> Findings:
    experiment = EXPERIMENTS.get(stored.name)
    if experiment is None or experiment.rejudge is None:
        return stored
    return experiment.rejudge(stored, evidence)


def _scale(experiment: Experiment, evidence: Evidence, stored: str | None) -> str:
    """Return how large an experiment is: as was stored, unless a protocol leaves no choice."""
    if experiment is not EXPERIMENTS.get(evidence.name):
        return OWN
    if experiment.protocol is not None and stored != Scale.QUICK.value:  # not a smoke run
        return Scale.MINI.value
    return stored or scale_of(evidence)


def scale_of(evidence: Evidence) -> str:
    """Tell by its tasks how large an experiment was."""
    return "mini" if any(task.endswith("-mini") for task in evidence.tasks) else "full"

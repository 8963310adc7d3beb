"""The same three models under every scheme and step; a test names cells that are run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from depthpde.papers.ablation.by_depth import CENTRED, COSINE, TRAINING
from depthpde.papers.ablation.signs import sign_scores
from depthpde.papers.ablation.variants import BOTH, NO_NORM, NO_RESIDUAL, SIMULATOR, label
from depthpde.papers.confirmatory.schemes import EXPERIMENT, PROTOCOL, SCHEMES, TASKS, VARIANTS
from depthpde.papers.experiment import Case
from depthpde.records.evidence import gather
from depthpde.records.protocols.endpoints import ACCURACY, COSINE_TO_INPUT, LARGEST_GRADIENT
from depthpde.records.record import read_grids, read_records

RESULTS = Path(__file__).parents[3] / "results"


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "cc959c03acedb63a"


def test_every_scheme_and_step_has_three_models_that_differ_in_stabilizers_alone():
    runs = {cell.variant: run for cell, run in EXPERIMENT.plan(seeds=1).cells}
    assert len(runs) == 3 * len(SCHEMES) == len(VARIANTS)
    for contrast in PROTOCOL.contrasts:
        ours, theirs = runs[contrast.variant], runs[contrast.against]
        assert ours.simulator == theirs.simulator
        assert ours.model.stability != theirs.model.stability
        assert ours.training.clip is None


def test_growth_and_drift_are_asked_of_every_scheme_before_accuracy():
    kinds = [each.endpoint for each in PROTOCOL.contrasts]
    signs = [LARGEST_GRADIENT] * len(SCHEMES) + [COSINE_TO_INPUT] * len(SCHEMES)
    assert kinds == [*signs, LARGEST_GRADIENT, ACCURACY]


def test_the_last_sign_compares_growth_near_the_equation_with_growth_by_the_block():
    """Records of `stabilization`, the same for every scheme: a difference of growths is 0."""
    records = read_records(RESULTS).found
    stabilization = gather(read_grids(RESULTS).by_name["stabilization"], records)
    runs = {}
    for variant in VARIANTS:
        stabilizer = variant.label.split(", ")[-1]
        for task in TASKS:
            each = stabilization.runs[task, label(SIMULATOR, stabilizer)]
            runs[task, variant.label] = {
                seed: replace(run, config=run.config | {"study": PROTOCOL.digest, "seed": seed})
                for seed, run in zip(PROTOCOL.test_seeds, each.values(), strict=True)
            }
    names = tuple(each.label for each in VARIANTS)
    evidence = replace(stabilization, tasks=TASKS, variants=names, runs=runs)
    found = EXPERIMENT.judge(Case(scale="mini", evidence=evidence))
    growth, drift, same = found.claims[0], found.claims[len(SCHEMES)], found.claims[-2]
    assert same.effect == pytest.approx(0.0, abs=1e-12)
    for claim, endpoint, pair in (
        (growth, LARGEST_GRADIENT, (NO_NORM, BOTH)),
        (drift, COSINE_TO_INPUT, (BOTH, NO_RESIDUAL)),
    ):
        scores = sign_scores(evidence, endpoint)
        ours, theirs = (scores[f"lie, dt 1, {each}"] for each in pair)
        mean = np.mean([np.mean([ours[t][s] - theirs[t][s] for s in ours[t]]) for t in TASKS])
        assert claim.effect == pytest.approx(mean)
    assert [row["variant"] for row in found.tables[TRAINING]] == list(names)
    assert len(found.tables[COSINE]) == len(found.tables[CENTRED]) == len(names)

"""H1: trained clean, read under noise; a claim needs more than two points."""

from __future__ import annotations

from dataclasses import replace

from depthpde.papers.confirmatory.noise import EXPERIMENT, LEVELS, PROTOCOL, TASKS, VARIANTS
from depthpde.papers.confirmatory.stencil import BOUNDED, FREE, STEPS
from depthpde.papers.experiment import Case
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.study import confirmation_plan
from papers.confirmatory.test_conclusion import under
from papers.invented import evidence


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "8d24774bda4d37d1"


def test_every_run_reads_its_test_split_at_every_level():
    runs = confirmation_plan(EXPERIMENT.plan(), {}, PROTOCOL.looks[0]).runs
    assert len(runs) == 7 * 3 * 6
    assert {each.corruption for each in runs} == {LEVELS}


def judged(kept):
    """Judge invented runs whose accuracy at the level of half is known, by variant."""
    effects = {each.label: 0.0 for each in VARIANTS[1:]}
    found = evidence(effects, name="noise", seeds=6, tasks=TASKS)
    runs = {
        cell: {
            100 + seed: replace(
                run,
                config=dict(run.config) | {"seed": 100 + seed},
                result=dict(run.result)
                | {
                    "corrupted": {"0.04": 25.0 + kept.get(cell[1], 0.0) + seed / 10},
                    "trivial": {"majority": 10.0},
                },
            )
            for seed, run in each.items()
        }
        for cell, each in found.runs.items()
    }
    stamped = under(replace(found, runs=runs), PROTOCOL)
    claims = EXPERIMENT.judge(Case(scale="mini", evidence=stamped)).claims
    return [each.verdict for each in claims]


def test_noise_decides_and_two_points_are_not_enough():
    wins = {STEPS: 6.0, BOUNDED: 1.0, FREE: 0.0}
    assert judged(wins) == [Outcome.SUPPORTED] * 4
    assert judged({STEPS: 1.5})[0] is not Outcome.SUPPORTED
    assert judged({STEPS: -6.0})[0] is Outcome.CONTRADICTED

"""H3: the same two layers at four sizes; the claim is of their interaction."""

from __future__ import annotations

from dataclasses import replace

from depthpde.papers.confirmatory.few_data import EXPERIMENT, PROTOCOL, SIZES, TASKS
from depthpde.papers.experiment import Case
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.study import confirmation_plan
from papers.confirmatory.test_conclusion import under
from papers.invented import evidence


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "2039f330a2d66ae1"


def test_every_size_has_both_layers_and_rates_of_its_own():
    runs = confirmation_plan(EXPERIMENT.plan(), {}, PROTOCOL.looks[0]).runs
    assert len(runs) == 2 * 4 * 3 * 6
    assert {each.examples for each in runs} == set(SIZES)


def judged(gains):
    """Judge invented runs in which sixteen steps gain so much at each size."""
    effects = {
        each.label: gains[each.run["examples"]] if each.label.startswith("diffusion") else 0.0
        for each in EXPERIMENT.variants
    }
    found = evidence(effects, name="few-data", seeds=6, tasks=TASKS)
    runs = {
        cell: {
            100 + seed: replace(run, config=dict(run.config) | {"seed": 100 + seed})
            for seed, run in each.items()
        }
        for cell, each in found.runs.items()
        if cell[1] != "baseline"
    }
    made = replace(found, runs=runs, variants=tuple(effects), baseline=EXPERIMENT.baseline)
    claims = EXPERIMENT.judge(Case(scale="mini", evidence=under(made, PROTOCOL))).claims
    return [each.verdict for each in claims]


def test_an_advantage_that_falls_with_the_number_of_examples_is_supported():
    assert judged(dict(zip(SIZES, (6.0, 4.0, 2.0, 0.0), strict=True))) == [Outcome.SUPPORTED] * 2


def test_one_that_is_the_same_everywhere_is_no_interaction():
    same = judged(dict.fromkeys(SIZES, 4.0))
    assert same[0] is not Outcome.SUPPORTED
    assert same[1] is Outcome.INCONCLUSIVE, "the gate before it is closed"

"""A protocol is checked against its plan before anything is computed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.protocols.protocol import Look, PlannedContrast
from depthpde.sweeps.grid import Variant, bases
from depthpde.sweeps.study_tests import check_tests, doubts_of
from sweeps.test_study import PROTOCOL, TASK, TINY, a_plan

NOISE = {"corruption": [0.1, 0.2]}


def judging(endpoint, *, tasks=(TASK,), run=None, beyond=None, **changes):
    """Return a plan with one test of an endpoint, whose variants read what `run` says."""
    contrast = PlannedContrast(
        variant="placed", against="baseline", endpoint=endpoint, beyond=beyond
    )
    study = replace(PROTOCOL, endpoints=(endpoint,), contrasts=(contrast,), gates=())
    variants = [
        Variant(label, model={"dim": width}, run=run or {})
        for label, width in (("baseline", 8), ("placed", 16), ("third", 32))
    ]
    presets = {TASK: TINY} if tasks == (TASK,) else bases("mini", tasks)
    return a_plan(study, variants=variants, bases=presets, **changes)


@pytest.mark.parametrize(
    "name", [name for name, each in EXPERIMENTS.items() if each.protocol is not None]
)
def test_every_protocol_of_ours_can_be_decided(name):
    plan = EXPERIMENTS[name].plan()
    check_tests(plan)
    assert doubts_of(plan) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"contrasts": {"variant": "placd"}}, "contrasts.*did you mean 'placed'"),
        ({"contrasts": {"against": "baselin"}}, "did you mean 'baseline'"),
        ({"contrasts": {"beyond": ("placed", "third")}}, "contrasts.*got 'third'"),
        ({"gates": {"task": "text"}}, "gates.task.*got 'text'"),
        ({"gates": {"least": 100.0}}, "gates.least.*must be below 100, got 100; .* percent"),
    ],
)
def test_what_a_protocol_names_is_in_its_plan(changes, words):
    parts = {name: (replace(getattr(PROTOCOL, name)[0], **each),) for name, each in changes.items()}
    check_tests(a_plan())
    with pytest.raises(ValueError, match=words):
        check_tests(a_plan(replace(PROTOCOL, **parts)))


def test_endpoints_are_those_that_can_be_judged_and_gates_of_accuracy():
    with pytest.raises(ValueError, match=r"study.endpoints.*accuracy.*got 'f1'"):
        check_tests(judging("f1"))
    gate = replace(PROTOCOL.gates[0], endpoint="escape")
    study = replace(PROTOCOL, endpoints=("accuracy", "escape"), gates=(gate,))
    with pytest.raises(ValueError, match=r"gates.endpoint.*accuracy.*got 'escape'"):
        check_tests(a_plan(study))


def test_escapes_are_of_tasks_that_are_learned_at_once_and_means_of_the_others():
    with pytest.raises(ValueError, match=r"'escape' here, got listops-mini.*pathfinder-mini"):
        check_tests(judging("escape"))
    check_tests(judging("escape", tasks=("pathfinder-mini",)))
    alone = judging("accuracy", tasks=("pathfinder-mini",))
    with pytest.raises(ValueError, match=r"'escape' on pathfinder-mini alone, got 'accuracy'"):
        check_tests(alone)
    check_tests(judging("accuracy", tasks=("pathfinder-mini", "text-mini")))


@pytest.mark.parametrize(
    ("endpoint", "task", "wrong", "right", "words"),
    [
        ("accuracy under noise", TASK, {}, NOISE, r"`run.corruption` of 'baseline'.*got nothing"),
        (
            "accuracy in a window of 8", TASK, {"windows": [16]}, {"windows": [16, 8]},
            r"got 16; give every variant run: \{windows: \[8\]\}",
        ),
        (
            "accuracy in shuffled blocks of 16", TASK, {}, {"shuffles": [16]},
            r"run: \{shuffles: \[16\]\}",
        ),
        (
            "accuracy at length 1024", "text-mini", {"transfer": ["text/512"]},
            {"transfer": ["text/1024"]}, r"got text/512; .*\{transfer: \[text/1024\]\}",
        ),
        (
            "accuracy at twice the resolution", "mnist-mini", {"transfer": ["image"]},
            {"transfer": ["mnist", "image"]}, r"on mnist-mini, got image; .*\[mnist, image\]",
        ),
    ],
)  # fmt: skip
def test_a_reading_that_is_tested_is_made_by_the_runs(endpoint, task, wrong, right, words):
    with pytest.raises(ValueError, match=words):
        check_tests(judging(endpoint, tasks=(task,), run=wrong))
    check_tests(judging(endpoint, tasks=(task,), run=right))


def test_a_reading_is_asked_of_every_run_that_is_compared_and_of_the_baseline_under_noise():
    plan = judging("accuracy under noise", run=NOISE)
    *others, third = plan.variants
    check_tests(replace(plan, variants=[*others, replace(third, run={})]))
    for label in ("baseline", "placed"):
        part = [replace(v, run={}) if v.label == label else v for v in plan.variants]
        with pytest.raises(ValueError, match=f"of '{label}'"):
            check_tests(replace(plan, variants=part))
    beyond = judging("accuracy under noise", run=NOISE, beyond=("third", "baseline"))
    with pytest.raises(ValueError, match="of 'third'"):
        check_tests(replace(beyond, variants=[*others, replace(third, run={})]))


@pytest.mark.parametrize(("levels", "refused"), [([0.3], True), ([0.2, 0.1, 0.3], False)])
def test_noise_of_all_that_is_compared_has_the_levels_of_the_baseline(levels, refused):
    """Runs that share no level have no pair, which was found out after all of them."""
    plan = judging("accuracy under noise", run=NOISE)
    baseline, placed, third = plan.variants
    plan = replace(plan, variants=[baseline, replace(placed, run={"corruption": levels}), third])
    if not refused:
        check_tests(plan)
        return
    with pytest.raises(ValueError, match=r"of 'placed' must hold .*got 0.3 without 0.1, 0.2; give"):
        check_tests(plan)


def test_a_window_is_asked_of_the_baseline_only_where_it_is_compared():
    """Only noise is measured by the baseline: one that is not compared need not be read so."""
    endpoint = "accuracy in a window of 8"
    plan = judging(endpoint, run={"windows": [8]})
    baseline, *others = plan.variants
    between = PlannedContrast(variant="placed", against="third", endpoint=endpoint)
    alone = [replace(baseline, run={}), *others]
    check_tests(replace(plan, variants=alone, study=replace(plan.study, contrasts=(between,))))
    with pytest.raises(ValueError, match="of 'baseline'"):
        check_tests(replace(plan, variants=alone))


def test_a_task_that_cannot_be_read_so_is_refused_before_its_run_ends():
    run = {"corruption": [0.1]}
    with pytest.raises(
        ValueError, match=r"on retrieval-mini: `corruption` .* the one or the other"
    ):
        check_tests(judging("accuracy under noise", tasks=("retrieval-mini",), run=run))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"training": {"updates": 9}}, "leave updates to the protocol, got 9"),
        ({"training": {"learning_rate": 0.1}}, "leave learning_rate to the protocol"),
        ({"model": {"dim": 7}}, "'placed @ 0.001' on listops-mini: `heads`"),
    ],
)
def test_what_a_later_stage_would_refuse_is_refused_at_once(part, words):
    variants = [Variant("baseline"), Variant("placed", **part)]
    with pytest.raises(ValueError, match=words):
        check_tests(a_plan(variants=variants))


@pytest.mark.parametrize(
    ("looks", "margin", "words"),
    [
        ([(3, 0.05)], 0.0, ["3 seeds decides nothing", "3 pairs cannot reach level 0.05: .* 0.25"]),
        ([(6, 0.1)], 0.0, ["level 0.1 find something in 10.0%"]),
        ([(6, 0.05), (8, 0.05)], 0.0, ["level 0.05, 0.05 find something in [678]"]),
        ([(12, 0.0054), (24, 0.05)], 2.0, ["held to the 95 % interval at every look"]),
        ([(12, 0.0030), (24, 0.0490)], 0.0, []),
        ([(6, 0.05)], 2.0, []),
    ],
)
def test_what_weakens_a_protocol_is_told(looks, margin, words):
    first = replace(PROTOCOL.contrasts[0], margin=margin)
    study = replace(
        PROTOCOL,
        test_seeds=tuple(range(100, 100 + looks[-1][0])),
        looks=tuple(Look(seeds=seeds, p=p) for seeds, p in looks),
        contrasts=(first,),
    )
    found = doubts_of(a_plan(study))
    assert len(found) >= len(words)
    assert all(any(re.search(each, line) for line in found) for each in words)
    assert bool(found) is bool(words)


@pytest.mark.parametrize("tasks", [("pathfinder-mini",), ("pathfinder-mini", "text-mini")])
def test_a_test_of_escapes_has_the_pairs_of_its_one_task(tasks):
    """Nothing was said of a level that no test of escapes reaches."""
    plan = judging("escape", tasks=tasks)
    looks = (Look(seeds=6, p=0.01), Look(seeds=8, p=0.04))
    plan = replace(plan, study=replace(plan.study, test_seeds=tuple(range(100, 108)), looks=looks))
    (found,) = doubts_of(plan)
    assert found == "6 pairs cannot reach level 0.01: the smallest p that they have is 0.031"


def test_a_plan_without_a_protocol_has_nothing_to_doubt():
    assert doubts_of(EXPERIMENTS["placement"].plan()) == []

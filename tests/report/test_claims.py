"""A claim is judged by direction, size and number of pairs, and by nothing else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from depthpde.records.evidence import Evidence, Missing
from depthpde.records.findings import Findings, FindingVerdict
from depthpde.records.record import Record
from depthpde.report.claims import JUDGES, judge, judge_all

TASKS = ("text-mini", "image-mini")
POSITIONS = (
    "after embedding", "before norm", "in attention", "in heads", "after attention", "after ffn",
    "between blocks",
)  # fmt: skip


def record(task, variant, seed, accuracy, ratios=None):
    placed = [variant.replace(" ", "_")] if variant in POSITIONS else []
    config = {"task": task, "seed": seed, "model": {"positions": placed, "layer": "diffusion"}}
    result = {"status": "done", "test": {"accuracy": accuracy}, "ratios": ratios or {}}
    return Record(Path(), f"{task}{variant}{seed}", variant, config, {}, {}, result)


def evidence(effects, *, name="placement", seeds=8, spread=0.3, missing=(), tasks=TASKS):
    """Invent runs whose differences from the baseline are known."""
    random = np.random.default_rng(0)
    runs = {}
    for task in tasks:
        level = {seed: 50 + random.normal() for seed in range(seeds)}
        for variant, points in {"baseline": 0.0, **effects}.items():
            noise = 0.0 if variant == "baseline" else spread
            runs[task, variant] = {
                seed: record(task, variant, seed, level[seed] + points + noise * random.normal())
                for seed in range(seeds)
            }
    return Evidence(
        name=name,
        question="Where?",
        baseline="baseline",
        tasks=tasks,
        variants=("baseline", *effects),
        words={},
        runs=runs,
        missing=tuple(missing),
    )


def verdicts(effects, **options):
    return [each.verdict for each in judge(evidence(effects, **options), "mini").claims]


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (4.5, FindingVerdict.CONFIRMED),
        (1.5, FindingVerdict.PARTLY),
        (0.0, FindingVerdict.NOT_CONFIRMED),
        (-3.0, FindingVerdict.NOT_CONFIRMED),
    ],
)
def test_a_gain_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after embedding": points})[0] is wanted


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        (-2.8, FindingVerdict.CONFIRMED),
        (-1.0, FindingVerdict.PARTLY),
        (0.0, FindingVerdict.NOT_CONFIRMED),
        (2.8, FindingVerdict.NOT_CONFIRMED),
    ],
)
def test_a_loss_is_confirmed_only_in_direction_and_size(points, wanted):
    assert verdicts({"after attention": points})[1] is wanted


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_seeds_decide_nothing_however_many_tasks(seeds):
    effects = {"after embedding": 9.0} | dict.fromkeys(POSITIONS[1:], 0.0)
    five = tuple(f"task {number}" for number in range(5))
    found = judge(evidence(effects, seeds=seeds, tasks=five), "mini").claims
    assert {each.verdict for each in found} == {FindingVerdict.UNDECIDED}
    assert verdicts(effects, seeds=6, tasks=five)[0] is FindingVerdict.CONFIRMED


def test_a_task_without_pairs_leaves_the_average_undecided():
    found = evidence({"after embedding": 9.0})
    runs = {cell: each for cell, each in found.runs.items() if cell[0] != "image-mini"}
    claim = judge(dataclasses.replace(found, runs=runs), "mini").claims[0]
    assert claim.verdict is FindingVerdict.UNDECIDED
    assert "0 pairs on image-mini, 6 on every task are wanted" in claim.finding


def test_nothing_finished_is_undecided_and_says_so():
    found = judge(evidence({}), "mini").claims[0]
    assert found.verdict is FindingVerdict.UNDECIDED
    assert "no pair is finished" in found.finding
    assert found.n == 0


def test_the_best_position_must_be_apart_from_the_next():
    clear = {"after embedding": 3.0, "before norm": 1.0, "in heads": 0.0}
    assert verdicts(clear)[2] is FindingVerdict.CONFIRMED
    close = {"after embedding": 1.0, "before norm": 1.0}
    found = judge(evidence(close, spread=0.6), "mini").claims[2]
    assert found.verdict is FindingVerdict.NOT_CONFIRMED
    assert found.finding.startswith("the largest mean of the seven, but not apart")
    assert verdicts({"after embedding": 0.0, "before norm": 2.0})[2] is FindingVerdict.NOT_CONFIRMED


def test_more_than_local_mixing_is_judged_against_the_control_not_the_baseline():
    same = {"after embedding": 3.0, "conv from blur": 3.0}
    better = {"after embedding": 3.0, "conv from blur": 1.0}
    assert verdicts(same)[3] is FindingVerdict.NOT_CONFIRMED
    assert verdicts(better)[3] is FindingVerdict.CONFIRMED


def test_a_mix_is_judged_against_every_single_scale():
    effects = {"slow": 0.0, "medium": 1.0, "fast": 3.0, "mixed": 2.0, "mixed, gated": 2.0}
    four = [
        FindingVerdict.CONFIRMED,
        FindingVerdict.CONFIRMED,
        FindingVerdict.NOT_CONFIRMED,
        FindingVerdict.NOT_CONFIRMED,
    ]
    assert verdicts(effects, name="multiscale") == four
    for fixed, last in ((1.0, FindingVerdict.CONFIRMED), (3.0, FindingVerdict.NOT_CONFIRMED)):
        found = verdicts({**effects, "fast, fixed": fixed}, name="multiscale")
        assert found == [*four, last]


def test_a_mix_at_a_position_is_judged_against_the_best_single_scale_there():
    effects = {"in heads, slow": 0.0, "in heads, fast": 2.0, "in heads, mixed": 1.0}
    (found,) = judge(evidence(effects, name="multiscale-positions"), "mini").claims
    assert found.verdict is FindingVerdict.NOT_CONFIRMED
    assert "the best single scale there, in heads, fast: −0.9 points" in found.finding
    alone = {"in heads, mixed": 1.0}
    assert judge(evidence(alone, name="multiscale-positions"), "mini").claims == ()


def test_other_ways_are_judged_against_the_usual_one_at_the_same_place():
    effects = {
        "after embedding, explicit": 1.0, "after embedding, exact": 3.0, "after ffn, stream": 9.0,
    }  # fmt: skip
    (found,) = judge(evidence(effects, name="ways"), "mini").claims
    assert found.claim == "Another way is better: after embedding, exact instead of explicit."
    assert found.verdict is FindingVerdict.CONFIRMED


def test_diffusion_is_judged_within_each_encoding():
    effects = {"no sites": -5.0, "no sites + diffusion": -3.0}
    assert verdicts(effects, name="positional") == [FindingVerdict.CONFIRMED]


def test_what_is_missing_and_how_small_the_scale_is_are_said():
    gone = Missing("text-mini", "baseline", 9, "x", "pending")
    notes = judge(evidence({}, missing=[gone]), "mini").notes
    assert notes[0] == "1 of 17 runs are missing"
    assert "no number of Long Range Arena" in notes[1]
    assert judge(evidence({}), "full").notes == ()


def test_a_grid_of_ones_own_has_no_claims():
    assert "mine" not in JUDGES
    assert judge(evidence({}, name="mine"), "mini").claims == ()


def test_a_grid_is_judged_by_its_runs_whatever_was_stored():
    stored = [
        judge(evidence({}), "quick"),
        Findings(name="efficiency", question="?", scale="mini", claims=()),
    ]
    grids = [evidence({"after embedding": 4.5}), evidence({}, name="mine")]
    found = judge_all(grids, stored)
    assert [each.name for each in found] == ["placement", "efficiency"]
    assert found[0].scale == "quick"
    assert judge_all(grids, [])[0].scale == "mini"
    assert found[0].claims[0].verdict is FindingVerdict.CONFIRMED

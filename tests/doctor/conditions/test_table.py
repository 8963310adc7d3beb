"""Every condition on profiles made by hand: its number, its place, and what it says when unread."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.doctor.conditions.condition import Condition, Symptom
from depthpde.doctor.conditions.table import CONDITIONS, symptoms
from depthpde.doctor.depth_profile import DepthProfile, DepthSeries
from depthpde.doctor.diagnosis import judge
from depthpde.doctor.not_measured import NotMeasured
from depthpde.doctor.thresholds import OWN, Threshold, Thresholds, register_condition
from depthpde.doctor.verdict import severity

LABELS = ("embedding", "block 1", "block 2")
PLAIN = {
    "drift.centred_cosine": [1.0, 0.9, 0.8],
    "drift.step_centred_cosine": [0.9, 0.9],
    "drift.displacement": [0.5, 0.4],
    "rank.residual": [1.0, 0.9, 0.8],
    "energy.smoothness": [1.0, 0.9, 0.8],
    "energy.size": [1.0, 1.1, 1.2],
    "energy.peak": [3.0, 3.0, 4.0],
    "energy.massive": [4.0, 5.0, 5.0],
    "attention.entropy": [[0.9, 0.8], [0.7, 0.8]],
    "attention.logit": [[2.0, 1.0], [3.0, 4.0]],
    "attention.sink": [[0.1, 0.1], [0.1, 0.2]],
    "attention.twin": [[0.3, 0.3], [0.2, 0.2]],
    "attention.head_size": [[1.0, 1.0], [0.9, 1.1]],
    "attention.scale": [1.0, 1.0],
    "attention.hidden": [0.0, 0.0],
    "units.dead": [0.0, 0.1],
}
FACTS = {
    "dim": 4,
    "dtype": "float16",
    "format_max": 65504.0,
    "weights": [],
    "repeats": True,
    "frozen": {"names": [], "value": 0.0, "why": "", "component": ""},
    "norms": [("norm", 1e-4, 1e-5)],
    "positions": 0.1,
    "one_sided": False,
    "padding": {"size": 0.0, "where": ""},
    "logits": {"size": 1.0, "spread": 0.5},
}


def made(series=None, facts=None):
    whole = {**PLAIN, **(series or {})}
    return DepthProfile(
        model="",
        family="",
        blocks=2,
        parameters=0,
        sequences=2,
        tokens=9,
        causal=False,
        seconds=0.0,
        faithful=None,
        missing={"gradient": "no loss"},
        facts={**FACTS, **(facts or {})},
        series={
            name: DepthSeries(name, "", LABELS[len(LABELS) - len(values) :], tuple(values))
            for name, values in whole.items()
        },
    )


def grade(condition, **changes):
    verdict = next(v for v in judge(made(**changes)).verdicts if v.condition == condition)
    return verdict.grade.value


def test_the_table_is_whole():
    assert set(CONDITIONS) - set(OWN) == set(Condition)
    assert set(Thresholds.read().of) == set(Condition)


def test_a_plain_profile_is_healthy_in_all():
    output = judge(made())
    assert {each.grade.value for each in output.verdicts} == {"healthy"}
    assert len(output.verdicts) > 20


ILL = [
    (Condition.NOT_FINITE, {"series": {"energy.peak": [1.0, 1.0, 7e4]}}),
    (Condition.LOGITS, {"series": {"attention.logit": [[2.0, 1.0], [3.0, 4000.0]]}}),
    (Condition.BLIND_HEADS, {"series": {"attention.logit": [[0.0, 0.0], [3.0, 4.0]]}}),
    (Condition.TIED_HEADS, {"series": {"attention.twin": [[0.0, 0.0], [0.2, 0.2]]}}),
    (Condition.DEAD_HEADS, {"series": {"attention.head_size": [[2.0, 0.0], [1.0, 1.0]]}}),
    (Condition.SCALE, {"series": {"attention.scale": [1.0, 4.0]}}),
    (Condition.MASK_REACH, {"series": {"attention.hidden": [0.0, 0.1]}}),
    (Condition.NEURONS, {"series": {"units.dead": [0.0, 0.95]}}),
    (Condition.REDUNDANT, {"series": {"drift.displacement": [0.5, 0.0]}}),
    (Condition.NORM_EPSILON, {"facts": {"norms": [("norm", 0.9, 1.0)]}}),
    (Condition.POSITIONS, {"facts": {"positions": 0.0}}),
    (Condition.ONE_SIDED, {"facts": {"one_sided": True}}),
    (Condition.PADDING, {"facts": {"padding": {"size": 0.1, "where": "block 1"}}}),
    (Condition.UNREPEATABLE, {"facts": {"repeats": False}}),
    (Condition.OUTPUT, {"facts": {"logits": {"size": 1e4, "spread": 0.5}}}),
    (Condition.CONSTANT, {"facts": {"logits": {"size": 1.0, "spread": 0.0}}}),
]


@pytest.mark.parametrize(("condition", "changes"), ILL, ids=[str(each) for each, _ in ILL])
def test_an_illness_is_ill(condition, changes):
    assert grade(condition, **changes) == "ill"
    assert grade(condition) == "healthy"


def test_a_stream_explodes_where_three_blocks_show_it():
    sizes = DepthSeries("energy.size", "", (*LABELS, "block 3"), (1.0, 4.0, 16.0, 64.0))
    whole = made()
    found = symptoms(replace(whole, series={**whole.series, "energy.size": sizes}))
    assert found[Condition.STREAM].value == pytest.approx(4.0)
    assert Thresholds.read().of[Condition.STREAM].grade(4.0).value == "ill"
    assert "three blocks" in symptoms(whole)[Condition.STREAM].reason


def test_massive_activations_and_sinks_are_watched_and_are_no_collapse():
    sinks = {"attention.sink": [[0.95, 0.95], [0.95, 0.95]], "attention.entropy": [[0.0] * 2] * 2}
    output = {each.condition: each.grade.value for each in judge(made(sinks)).verdicts}
    assert output[Condition.SINKS] == "watch"
    assert output[Condition.ENTROPY] == "healthy"
    assert grade(Condition.MASSIVE, series={"energy.massive": [5000.0] * 3}) == "watch"


@pytest.mark.parametrize(
    ("scales", "where", "words"),
    [
        ([1.0, 1.0], "", "scores are q·k/√d"),
        ([2.0, 2.0], "block 1", "scores are ×2 of q·k/√d"),
        ([1.0, 4.0], "block 2", "scores of block 2 are ×4 of q·k/√d"),
        ([0.25, 1.0], "block 1", "scores of block 1 are ×0.25 of q·k/√d"),
    ],
)
def test_the_block_whose_scores_are_scaled_is_named_with_its_own_factor(scales, where, words):
    found = symptoms(made({"attention.scale": scales}))[Condition.SCALE]
    assert (found.where, found.evidence) == (where, words)
    assert found.value == pytest.approx(max(scales, key=lambda each: abs(math.log(each))))


def test_the_first_module_that_is_not_finite_is_named_with_the_range():
    first = {"module": "block.2.ffn", "kind": "Linear", "input": 70000.0}
    found = symptoms(made(facts={"not_finite_module": first}))[Condition.NOT_FINITE]
    assert isinstance(found, Symptom)
    assert found.where == "block.2.ffn"
    assert "7e+04" in found.evidence
    assert "6.55e+04" in found.evidence


def test_one_s_own_condition_takes_part_in_every_diagnosis():
    limit = Threshold(
        row="loudness",
        sign="last size",
        worse="high",
        watch=5.0,
        ill=10.0,
        advice="lower the gain of {where}",
    )
    register_condition(
        "loud end", lambda seen: Symptom(seen["energy.size"][-1], "loud", "block 2"), limit
    )
    try:
        output = judge(made({"energy.size": [1.0, 1.0, 20.0]}))
        verdict = next(each for each in output.verdicts if each.condition == "loud end")
        assert verdict.advice == "lower the gain of block 2"
        assert "loud end" in output.conditions
    finally:
        del CONDITIONS["loud end"], OWN["loud end"]


def test_refuses_a_name_that_is_built_in():
    limit = Threshold(row="r", sign="s", worse="high", watch=1.0, ill=2.0, advice="a")
    with pytest.raises(ValueError, match=r"rank collapse.*another"):
        register_condition("rank collapse", lambda seen: None, limit)


def test_severity_is_one_at_watch_and_two_at_ill():
    high = Threshold(row="", sign="", worse="high", watch=10.0, ill=1000.0, advice="")
    low = replace(high, worse="low", watch=0.1, ill=0.001)
    assert [severity(high, x) for x in (0.0, 10.0, 100.0, 1000.0, math.inf)] == pytest.approx(
        [0, 1, 1.5, 2, 4]
    )
    assert [severity(low, x) for x in (1.0, 0.1, 0.001, 0.0)] == pytest.approx([0.5, 1, 2, 4])
    assert severity(high, math.nan) == 4.0
    step = replace(high, watch=0.5, ill=0.5)
    assert [severity(step, x) for x in (0.0, 1.0)] == [0.0, 2.0]
    line = replace(high, watch=0.0, ill=-1.0, worse="low")
    assert severity(line, -0.5) == pytest.approx(1.5)


def test_what_is_not_measured_says_why():
    bare = replace(
        made(),
        series={k: v for k, v in made().series.items() if "attention" not in k},
        missing={"attention": "no heads", "gradient": "no loss"},
        facts={"dim": 4},
    )
    found = symptoms(bare)
    assert found[Condition.LOGITS] == NotMeasured("no heads")
    assert isinstance(found[Condition.EMPTY_WEIGHTS], NotMeasured)
    assert Condition.CACHE not in found


def test_every_condition_has_advice_and_a_section_that_explains_it():
    page = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
    heads = [each[3:] for each in page.read_text().splitlines() if each.startswith("## ")]
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in heads}
    for condition, limit in Thresholds.read().of.items():
        assert len(limit.advice) > 20, condition
        assert limit.why in anchors, condition
    assert len(heads) >= 10


def test_a_condition_that_gives_a_bare_reason_is_refused_by_name():
    limit = Threshold(row="x", sign="x", worse="high", watch=1.0, ill=2.0, advice="x")
    register_condition("of a sentence", lambda seen: "no reason", limit)
    try:
        with pytest.raises(ValueError, match=r"'of a sentence'.*NotMeasured"):
            symptoms(made())
    finally:
        del CONDITIONS["of a sentence"], OWN["of a sentence"]

"""One table: which numbers and which claim give which verdict."""

from __future__ import annotations

import pytest

from depthpde.records.statistics.survival import EscapeTime
from depthpde.records.verdicts import (
    Hypothesis,
    Outcome,
    Verdict,
    judge,
    judge_escape,
    judged_in_order,
    with_p,
)

GAIN = [1.4, 1.9, 1.1, 2.0, 1.7, 1.5]  # interval [1.1, 2.0]
OPEN = [1.4, -1.9, 1.1, -2.0, 1.7, 0.5]  # interval [−2.0, +1.7]
NONE = [0.1, -0.2, 0.0, 0.1, 0.2, -0.1]  # interval [−0.2, +0.2]
SMALL = [0.1, 0.2, 0.15, 0.3, 0.25, 0.2]  # interval [0.1, 0.3]
FEW = [1.4, 1.9, 1.1]

TABLE = [
    (GAIN, Hypothesis(), "supported"),
    (GAIN, Hypothesis(size=1.9), "supported"),
    (GAIN, Hypothesis(size=0.3), "supported"),  # larger than claimed bears it out
    (GAIN, Hypothesis(size=4.07), "smaller than claimed"),
    (GAIN, Hypothesis(mark=1.0), "supported"),
    (GAIN, Hypothesis(mark=1.5), "inconclusive"),  # right side, the mark inside
    (GAIN, Hypothesis(mark=2.5), "smaller than claimed"),
    (GAIN, Hypothesis(sign=-1), "contradicted"),
    (GAIN, Hypothesis(sign=-1, size=2.5), "contradicted"),
    (GAIN, Hypothesis(sign=0, margin=0.75), "contradicted"),
    (GAIN, Hypothesis(sign=0, margin=1.5), "inconclusive"),
    (GAIN, Hypothesis(sign=0, margin=3.0), "equivalent"),
    ([-each for each in GAIN], Hypothesis(sign=-1, size=1.9), "supported"),
    ([-each for each in GAIN], Hypothesis(sign=-1, size=4.0), "smaller than claimed"),
    ([-each for each in GAIN], Hypothesis(sign=0, margin=0.75), "contradicted"),
    (OPEN, Hypothesis(), "inconclusive"),
    (OPEN, Hypothesis(size=4.07), "inconclusive"),
    (OPEN, Hypothesis(sign=0), "inconclusive"),
    (NONE, Hypothesis(), "equivalent"),
    (NONE, Hypothesis(size=4.07), "equivalent"),
    (NONE, Hypothesis(sign=0), "equivalent"),
    (NONE, Hypothesis(margin=0.05), "inconclusive"),
    (SMALL, Hypothesis(), "supported"),
    (SMALL, Hypothesis(size=4.07), "smaller than claimed"),  # the side comes before equivalence
    (SMALL, Hypothesis(sign=-1), "contradicted"),
    (FEW, Hypothesis(), "inconclusive"),
    (FEW, Hypothesis(sign=0, margin=9.0), "inconclusive"),
]


@pytest.mark.parametrize(("values", "hypothesis", "outcome"), TABLE)
def test_the_table_of_verdicts(values, hypothesis, outcome):
    assert judge({"task": values}, hypothesis).outcome == outcome


def test_every_outcome_of_the_scale_is_in_the_table():
    assert {outcome for *_, outcome in TABLE} == {str(each) for each in Outcome} - {
        "not judged yet"  # given by a protocol, never by numbers
    }


@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
@pytest.mark.parametrize(("values", "hypothesis", "outcome"), TABLE)
def test_a_verdict_does_not_depend_on_the_unit(values, hypothesis, outcome, scale):
    other = Hypothesis(
        sign=hypothesis.sign,
        size=None if hypothesis.size is None else hypothesis.size * scale,
        mark=hypothesis.mark * scale,
        margin=hypothesis.margin * scale,
    )
    assert judge({"task": [scale * each for each in values]}, other).outcome == outcome


def test_a_verdict_brings_effect_interval_n_margin_and_power():
    found = judge({"task": GAIN}, Hypothesis(size=4.07, margin=0.75))
    assert found.effect == pytest.approx(1.6)
    assert (found.interval.low, found.interval.high) == (1.1, 2.0)
    assert found.n == 6
    assert found.equivalence.margin == 0.75
    assert found.p == 2.0**-5
    assert found.power == "6 pairs would have shown 0.59 points with 80 %"
    assert found.sentence() == (
        "smaller than claimed: +1.60 points [+1.10, +2.00], 6 pairs, p = 0.031; "
        "6 pairs would have shown 0.59 points with 80 %"
    )


def test_too_few_pairs_are_said_to_be_too_few_and_offer_no_interval():
    found = judge({"task": FEW, "other": GAIN}, Hypothesis())
    assert found.interval is None
    assert found.power == "cannot be told from 9 pairs"
    assert "[" not in found.sentence()


def test_a_size_may_be_excluded_while_the_sign_is_open():
    found = judge({"task": OPEN}, Hypothesis(size=4.07))
    assert found.size_excluded
    assert "sign is open" in found.sentence()
    assert "within ±0.5" in judge({"task": NONE}, Hypothesis()).sentence()


def test_several_tasks_are_one_verdict_and_p_must_agree():
    found = judge({"a": GAIN, "b": SMALL, "c": NONE}, Hypothesis())
    assert (found.n, found.tasks) == (18, 3)
    assert found.outcome is Outcome.SUPPORTED
    assert " on 3 tasks" in found.sentence()
    assert with_p(found, 0.2).outcome is Outcome.INCONCLUSIVE


def test_one_task_against_four_does_not_carry_a_verdict():
    tight = [0.30, 0.31, 0.29, 0.30, 0.32, 0.28]
    torn = {"a": [9.0, 11.0, 10.0, 9.5, 10.5, 10.0]}
    torn |= {name: [-each for each in tight] for name in "bcde"}
    found = judge(torn, Hypothesis())
    assert found.interval.low > 0
    assert found.p == 1.0
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "disagree" in found.sentence()


def test_small_units_are_written_with_enough_digits():
    found = judge({"t": [each / 1000 for each in GAIN]}, Hypothesis(), unit="nats")
    assert "+0.00160 nats [+0.00110, +0.00200]" in found.sentence()
    assert "p of equivalence = 1" in judge({"t": GAIN}, Hypothesis(sign=0)).sentence()


def test_measurements_of_one_system_have_no_p():
    found = judge({"task": GAIN}, Hypothesis(), test=False)
    assert found.p is None
    assert found.outcome is Outcome.SUPPORTED
    assert "p =" not in found.sentence()


def test_a_difference_that_is_not_none_leaves_equivalence_open_and_says_so():
    """No word of a few tasks: p is that of equivalence, and agrees with the interval."""
    apart = {"t": [-0.9, -0.5, -1.2, -0.3, -0.8, -0.6]}
    found = judge(apart, Hypothesis(sign=0, margin=0.75))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.interval.high < 0
    assert found.remarks() == ["0 lies outside the interval; whether within ±0.75 is open"]


def test_an_order_closes_behind_what_was_not_shown():
    found = judged_in_order(
        {
            "first": judge({"t": GAIN}, Hypothesis()),
            "second": judge({"t": OPEN}, Hypothesis()),
            "third": judge({"t": GAIN}, Hypothesis()),
            "fourth": judge({"t": NONE}, Hypothesis(sign=0)),
            "fifth": judge({"t": GAIN}, Hypothesis(sign=0, margin=0.75)),
            "sixth": judge({"t": NONE}, Hypothesis()),
        }
    )
    outcomes = [each.outcome for each in found.values()]
    assert outcomes == ["supported", *["inconclusive"] * 5]
    assert "second was not shown" in found["third"].sentence()


def test_equivalence_is_a_step_of_an_order():
    found = judged_in_order(
        {
            "V1 − V0": judge({"t": GAIN}, Hypothesis()),
            "V1 ≡ V2": judge({"t": NONE}, Hypothesis(sign=0, margin=0.75)),
            "V1 − V3": judge({"t": SMALL}, Hypothesis()),
        }
    )
    assert [each.outcome for each in found.values()] == ["supported", "equivalent", "supported"]


def test_an_order_needs_a_p_of_each():
    with pytest.raises(ValueError, match=r"'late'.*3 pairs"):
        judged_in_order({"late": judge({"t": FEW}, Hypothesis(sign=0))})


def escapes(*updates, end=600):
    return {seed: EscapeTime(min(u, end), escaped=u <= end) for seed, u in enumerate(updates)}


def test_escapes_are_judged_by_time_and_never_by_an_interval():
    fast, slow = escapes(*[100] * 6), escapes(*[500] * 6)
    assert judge_escape(fast, slow, sooner=True).outcome is Outcome.SUPPORTED
    late = judge_escape(slow, fast, sooner=True)
    assert late.outcome is Outcome.CONTRADICTED
    assert late.effect == 400
    assert late.interval is None
    assert late.unit == "updates"
    assert judge_escape(fast, fast, sooner=True).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sign": 2}, "sign.*2"),
        ({"size": -4.0}, "without sign"),
        ({"mark": -1.0}, "without sign"),
        ({"mark": 1.0, "size": 2.0}, "two claims"),
        ({"margin": 0.0}, "margin"),
    ],
)
def test_a_hypothesis_that_could_not_be_judged_is_refused(fields, words):
    with pytest.raises(ValueError, match=words):
        Hypothesis(**fields)


def test_verdicts_are_values():
    assert judge({"t": GAIN}, Hypothesis()) == judge({"t": GAIN}, Hypothesis())
    assert isinstance(judge({"t": GAIN}, Hypothesis()), Verdict)

import math

import pytest

from depthpde.papers.judgement import corrected, judge, judge_order, slope, spread
from depthpde.records.findings import FindingVerdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([2.0, 2.1, 1.9, 2.0, 2.2, 1.8], FindingVerdict.CONFIRMED),
        ([2.0, 2.1, 1.9, 2.0], FindingVerdict.UNDECIDED),  # no p of four pairs is small
        ([0.5, 0.6, 0.4, 0.5, 0.6, 0.4], FindingVerdict.PARTLY),
        ([0.5, 0.6, 0.4, 0.5], FindingVerdict.UNDECIDED),
        ([0.5, -0.6, 0.4, -0.5], FindingVerdict.NOT_CONFIRMED),
        ([-2.0, -2.1, -1.9, -2.0], FindingVerdict.NOT_CONFIRMED),
        ([3.0, -3.2, 2.5, -2.4], FindingVerdict.UNDECIDED),
        ([3.0, -3.2, 2.5, -2.4, 3.1, -3.0, 2.2, -2.1], FindingVerdict.NOT_CONFIRMED),
        ([9.0, 9.0], FindingVerdict.UNDECIDED),
        ([9.0, 9.0, math.nan, math.inf], FindingVerdict.UNDECIDED),
        ([1.0, 8.0, 1.5, 0.2], FindingVerdict.UNDECIDED),
    ],
)
def test_a_verdict_follows_the_whole_interval(values, verdict):
    found = judge("claim", "by {mean:.1f}", values, above=1.0)
    assert found.verdict is verdict
    finite = [each for each in values if math.isfinite(each)]
    assert found.n == len(finite)
    assert found.finding == f"by {sum(finite) / len(finite):.1f}"
    if found.interval:
        assert found.interval[0] <= sum(finite) / len(finite) <= found.interval[1]


@pytest.mark.parametrize("above", [-0.02, 0.0])
def test_a_mark_below_zero_confirms_no_loss(above):
    gains = [0.01, 0.011, 0.009, 0.01, 0.012, 0.008]
    losses = [-each for each in gains]
    assert judge("c", "f", losses, above=above).verdict is FindingVerdict.NOT_CONFIRMED
    assert judge("c", "f", gains, above=above).verdict is FindingVerdict.CONFIRMED


def test_p_is_corrected_for_as_many_claims_as_were_tested():
    claims = [
        judge("a", "f", [1.0, 2.0, 3.0, 2.0, 1.0, 2.0]),
        judge("b", "f", [1.0, 2.0, 3.0], test=False),
        judge("c", "f", [1.0, 2.0, 3.0, 2.0]),
    ]
    assert [each.p for each in claims] == [1 / 32, None, 1 / 8]
    found = corrected(claims)
    assert [each.p for each in found] == [2 / 32, None, 1 / 8]
    assert [each.claim for each in found] == ["a", "b", "c"]
    assert corrected([]) == ()


def test_a_verdict_that_the_corrected_p_does_not_bear_out_is_taken_back():
    six, many = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0], [4.0, 5.0, 3.0, 6.0, 5.0, 4.0, 5.0, -1.0, -2.0, 1.0]
    alone = [judge("few", "f", six), judge("many", "f", many), judge("plain", "f", six, test=False)]
    assert [each.verdict for each in alone] == [FindingVerdict.CONFIRMED] * 3
    crowd = [judge("other", "f", [1.0, -1.0] * 5) for _ in range(8)]
    found = corrected([*alone, *crowd])
    assert [each.verdict for each in found[:3]] == [
        FindingVerdict.UNDECIDED,  # six pairs could never reach it among so many
        FindingVerdict.NOT_CONFIRMED,  # ten could, and do not
        FindingVerdict.CONFIRMED,  # not tested
    ]


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.98, FindingVerdict.CONFIRMED),
        (0.7, FindingVerdict.PARTLY),
        (0.3, FindingVerdict.NOT_CONFIRMED),
    ],
)
def test_a_share_is_not_borne_out_by_being_positive(share, verdict):
    values = [share - 0.01, share, share + 0.01] * 2
    assert judge("c", "f", values, above=0.95, partly=0.5, test=False).verdict is verdict


def test_paired_differences_are_tested_and_plain_numbers_are_not():
    assert judge("c", "f", [1.0, 2.0, 3.0]).p == 0.25
    assert judge("c", "f", [1.0, 2.0, 3.0], test=False).p is None


@pytest.mark.parametrize(
    ("slopes", "verdict"),
    [
        ([1.0, 1.02, 0.98], FindingVerdict.CONFIRMED),
        ([0.7, 0.71, 0.69], FindingVerdict.PARTLY),
        ([2.0, 2.01, 1.99], FindingVerdict.PARTLY),
        ([0.1, 0.0, 0.2], FindingVerdict.NOT_CONFIRMED),
        ([1.0], FindingVerdict.UNDECIDED),
        ([1.0, 0.3, 1.4], FindingVerdict.UNDECIDED),
    ],
)
def test_an_order_is_confirmed_within_its_tolerance_only(slopes, verdict):
    assert judge_order("c", "{mean:.2f}", slopes, wanted=1.0).verdict is verdict


def test_the_slope_of_a_power_law_is_its_power():
    sizes = (4, 8, 16)
    assert slope(sizes, [3 * n**-2.5 for n in sizes]) == pytest.approx(2.5)
    assert math.isnan(slope(sizes, [1.0, 0.0, 1.0])), "an error of zero has no logarithm"
    assert math.isnan(slope((4,), [1.0]))


def test_a_spread_says_what_there_is():
    assert spread([]) == "–"
    assert spread([None, 2.5]) == "2.5"
    assert spread([1.0, 2.0, 3.0, None]) == "2 ± 2.5"

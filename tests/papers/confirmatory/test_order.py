"""The first test that does not show its claim ends the order, whatever its p."""

import pytest

from depthpde.papers.claims import number_claim, undecided
from depthpde.papers.confirmatory.order import until_not_shown
from depthpde.records.verdicts import Outcome

SIX = [2.0, 2.1, 1.9, 2.0, 2.2, 1.8]


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        ([-each for each in SIX], Outcome.CONTRADICTED),
        ([0.6 * each for each in SIX], Outcome.SMALLER),
        ([0.01, -0.02, 0.01, 0.0, 0.02, -0.01], Outcome.EQUIVALENT),
        (SIX[:5], Outcome.INCONCLUSIVE),
    ],
)
def test_the_first_test_that_does_not_show_its_claim_ends_the_order(first, outcome):
    """A contradicted claim, or one below its mark, has a small p and let the next be tested."""
    claims = [
        number_claim("a: it is more.", "f", {"t": first}, mark=1.5),
        number_claim("b", "f", {"t": SIX}),
    ]
    rows = until_not_shown(claims)
    assert [each.verdict for each in rows] == [outcome, Outcome.INCONCLUSIVE]
    assert "not reached: it is more was not shown" in rows[1].finding
    assert rows[1].p is None


def test_a_test_that_nothing_was_finished_for_ends_the_order_too():
    claims = [undecided("a.", "no pair is finished", 0), number_claim("b", "f", {"t": SIX})]
    assert until_not_shown(claims)[1].verdict is Outcome.INCONCLUSIVE
    assert until_not_shown(claims[1:])[0].verdict is Outcome.SUPPORTED


@pytest.mark.parametrize("claim", ["growth: ", ".", "Paper A: ."])
def test_a_claim_without_words_of_its_own_closes_its_gate_too(claim):
    """The gate was known by the name that was left of the claim: of these there was none."""
    against = [-each for each in SIX]
    claims = [number_claim(claim, "f", {"t": against}), number_claim("b", "f", {"t": SIX})]
    assert [each.verdict for each in until_not_shown(claims)] == [
        Outcome.CONTRADICTED,
        Outcome.INCONCLUSIVE,
    ]


def test_what_was_shown_before_stays_with_the_largest_p_so_far():
    weak = [2.0, 2.1, 1.9, 2.0, 2.2, 1.8, 2.0, 1.9]
    rows = until_not_shown([number_claim(c, "f", {"t": v}) for c, v in (("a", SIX), ("b", weak))])
    assert [each.verdict for each in rows] == [Outcome.SUPPORTED] * 2
    assert rows[0].p == rows[1].p == 1 / 32

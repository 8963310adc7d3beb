"""Other ways of diffusing are judged against the usual one."""

from __future__ import annotations

from depthpde.records.verdicts import Outcome
from papers.invented import evidence, judge


def test_other_ways_are_judged_against_the_usual_one_at_the_same_place():
    effects = {
        "after embedding, explicit": 1.0, "after embedding, exact": 3.0, "after ffn, stream": 9.0,
    }  # fmt: skip
    (found,) = judge(evidence(effects, name="ways")).claims
    assert found.claim == "It does not matter how: after embedding, exact instead of explicit."
    assert found.verdict is Outcome.CONTRADICTED

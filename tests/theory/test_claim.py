import dataclasses
import json
import math

import pytest
import torch

from depthpde.theory.claim import (
    Check,
    Claim,
    ClaimEvidence,
    LineRole,
    Plot,
    Relation,
    TheoryVerdict,
    examine,
    line,
)


def number(measured: float, comparison: Relation = Relation.AT_MOST) -> Check:
    return Check(quantity="a number", predicted=1.0, measured=measured, comparison=comparison)


def claim(measured: float, refuting: float) -> Claim:
    return Claim(
        name="small",
        statement="The number is at most one.",
        equation="x ≤ 1",
        source="here",
        measure=lambda: ClaimEvidence(checks=(number(0.5), number(measured))),
        counterexample="a large number",
        refute=lambda: number(refuting),
    )


@pytest.mark.parametrize(
    ("comparison", "measured", "holds"),
    [
        (Relation.EQUAL, 1.05, True),
        (Relation.EQUAL, 0.95, True),
        (Relation.EQUAL, 1.15, False),
        (Relation.EQUAL, 0.85, False),
        (Relation.AT_MOST, -9.0, True),
        (Relation.AT_MOST, 1.05, True),
        (Relation.AT_MOST, 1.15, False),
        (Relation.AT_LEAST, 9.0, True),
        (Relation.AT_LEAST, 0.95, True),
        (Relation.AT_LEAST, 0.85, False),
    ],
)
def test_a_check_holds_within_its_tolerance_only(
    comparison: Relation, measured: float, holds: bool
) -> None:
    check = Check(
        quantity="a number",
        predicted=1.0,
        measured=measured,
        comparison=comparison,
        tolerance=0.1,
    )
    assert check.holds is holds


@pytest.mark.parametrize("comparison", list(Relation))
def test_not_a_number_never_holds(comparison: Relation) -> None:
    assert not number(math.nan, comparison).holds


def test_a_claim_holds_if_its_checks_do_and_the_counter_example_is_rejected() -> None:
    assert examine(claim(measured=0.9, refuting=1.1)).verdict is TheoryVerdict.HOLDS


def test_a_claim_fails_if_any_check_does() -> None:
    assert examine(claim(measured=1.1, refuting=1.1)).verdict is TheoryVerdict.FAILS


def test_a_claim_is_blind_if_the_counter_example_passes() -> None:
    assert examine(claim(measured=0.9, refuting=0.9)).verdict is TheoryVerdict.BLIND


def test_a_finding_is_plain_json_with_its_verdict() -> None:
    record = json.loads(json.dumps(examine(claim(measured=0.9, refuting=1.1)).as_json()))
    assert record["verdict"] == "holds"
    assert [check["holds"] for check in record["checks"]] == [True, True]
    assert record["refutation"]["holds"] is False
    assert record["refutation"]["measured"] == 1.1


def test_a_line_is_made_of_plain_short_floats() -> None:
    series = line("third", [1, 2], [1 / 3, math.inf], LineRole.BASELINE)
    assert series.x == (1.0, 2.0)
    assert series.y == (0.3333333, math.inf)
    plot = Plot(title="t", x_label="x", y_label="y", series=(series,), description="d")
    assert plot.series[0].role is LineRole.BASELINE


def test_examining_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    seen = []

    def measure() -> ClaimEvidence:
        seen.append(torch.get_num_threads())
        return ClaimEvidence(checks=(number(0.5),))

    examine(dataclasses.replace(claim(0.9, 1.1), measure=measure))
    assert seen == [1]
    assert torch.get_num_threads() == before

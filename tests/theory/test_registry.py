import dataclasses
import math

import pytest

from depthpde.theory.claim import Check, Finding, TheoryVerdict, examine
from depthpde.theory.registry import CLAIMS

NAMED_BY_THE_PAPER = {
    "spectrum": "Theorem 3.2",
    "cfl": "Theorem 3.3",
    "energy-decay": "Theorems 3.4",
    "gradient-decay": "Theorem A.2",
    "heat-kernel": "Theorem A.3",
    "gradient-flow": "Theorem 3.1",
    "nonexpansive": "v3, layer 1",
    "perturbation": "v3, layer 2",
    "commutator": "v3, layer 3",
}


NUM_PLOTS = {
    "cfl": 1,
    "energy-decay": 1,
    "heat-kernel": 1,
    "multiscale-bands": 2,
    "commutator": 1,
    "smoothed-weights": 1,
    "normalization": 1,
    "rank-collapse": 1,
}


@pytest.fixture(scope="module", params=list(CLAIMS))
def finding(request: pytest.FixtureRequest) -> Finding:
    return examine(CLAIMS[request.param])


def far_off(check: Check) -> list[Check]:
    return [
        dataclasses.replace(check, measured=check.predicted + way * (1e3 + 2 * check.tolerance))
        for way in (1, -1)
    ]


def test_every_claim_holds(finding: Finding) -> None:
    assert [check for check in finding.checks if not check.holds] == []
    assert finding.verdict is TheoryVerdict.HOLDS


def test_every_counter_example_is_rejected_by_the_claims_own_check(finding: Finding) -> None:
    assert not finding.refutation.holds
    same = [
        check
        for check in finding.checks
        if check.comparison is finding.refutation.comparison
        and check.tolerance == finding.refutation.tolerance
    ]
    assert same, "the counter-example must be judged as the claim is"


def test_every_check_could_fail(finding: Finding) -> None:
    for check in finding.checks:
        assert not all(other.holds for other in far_off(check))


def test_every_number_is_finite(finding: Finding) -> None:
    for check in (*finding.checks, finding.refutation):
        assert math.isfinite(check.predicted)
        assert math.isfinite(check.measured)


def test_every_plot_is_there_labelled_and_has_a_text_alternative(finding: Finding) -> None:
    assert len(finding.plots) == NUM_PLOTS.get(finding.name, 0)
    for plot in finding.plots:
        assert all((plot.title, plot.x_label, plot.y_label, len(plot.description) > 40))
        for series in plot.series:
            assert len(series.x) == len(series.y) > 1
            assert all(math.isfinite(value) for value in series.y)


def test_measuring_twice_gives_the_same_numbers(finding: Finding) -> None:
    assert examine(CLAIMS[finding.name]) == finding


def test_every_claim_is_filed_under_its_own_name() -> None:
    assert all(name == claim.name for name, claim in CLAIMS.items())


def test_claims_say_which_theorem_they_are() -> None:
    for name, theorem in NAMED_BY_THE_PAPER.items():
        assert theorem in CLAIMS[name].source

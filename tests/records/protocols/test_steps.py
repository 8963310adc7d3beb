import math

import pytest

from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.steps import (
    STAGES,
    GateError,
    GateResult,
    choose_rate,
    pass_gates,
    stage_grid,
    stage_of,
)

TEXT = BaselineGate(task="text", endpoint="accuracy", least=59.4, words="a bag of bytes")
IMAGE = BaselineGate(task="image", endpoint="accuracy", least=25.0, words="a linear probe")
PROTOCOL = StudyProtocol(
    name="medium",
    question="?",
    tuning_seeds=(200,),
    test_seeds=(100,),
    rates=(1e-3,),
    endpoints=("accuracy",),
    gates=(TEXT, IMAGE),
    contrasts=tuple(
        PlannedContrast(variant=each, against="baseline", endpoint="accuracy") for each in "abc"
    ),
    looks=(Look(seeds=1, p=0.05),),
)


def test_the_rate_of_the_least_mean_loss_is_chosen_and_a_tie_goes_to_the_smaller():
    assert choose_rate({2e-3: [1.0, 1.2], 1e-3: [1.1, 1.3], 5e-4: [1.2, 1.2]}) == 2e-3
    assert choose_rate({2e-3: [1.0], 1e-3: [1.0]}) == 1e-3


def test_a_rate_that_lost_a_seed_comes_after_all_that_lost_fewer():
    assert choose_rate({2e-3: [None], 1e-3: [math.nan], 5e-4: [7.0]}) == 5e-4
    assert choose_rate({2e-3: [0.1, None], 1e-3: [9.0, 9.0]}) == 1e-3
    assert choose_rate({2e-3: [0.1, None], 1e-3: [9.0, math.inf], 5e-4: [None, None]}) == 2e-3


def test_a_variant_that_diverges_at_every_rate_keeps_the_smallest():
    assert choose_rate({2e-3: [None], 1e-3: [math.inf], 4e-3: [math.nan]}) == 1e-3


def test_gates_pass_above_their_mark_and_wait_where_nothing_was_measured():
    results = pass_gates(PROTOCOL, {("text", "accuracy"): 60.0})
    assert [each.passed for each in results] == [True, False]
    assert str(results[0]) == "text accuracy: 60, above 59.4 (a bag of bytes): passed"
    assert str(results[1]).endswith("open")


@pytest.mark.parametrize("reached", [59.4, 57.3, math.nan])
def test_a_gate_that_fails_stops_the_experiment_and_says_which(reached):
    found = {("text", "accuracy"): reached, ("image", "accuracy"): 30.0}
    with pytest.raises(
        GateError, match=r"text accuracy.*59\.4 \(a bag of bytes\): FAILED"
    ) as printed:
        pass_gates(PROTOCOL, found)
    assert "image" not in str(printed.value)


def test_a_baseline_without_a_number_says_so_and_does_not_pass():
    diverged = GateResult(TEXT, math.nan)
    assert not diverged.passed
    assert str(diverged) == "text accuracy: diverged, above 59.4 (a bag of bytes): FAILED"


def test_the_grid_of_a_stage_names_its_study_and_any_other_none():
    for stage in STAGES:
        assert stage_of(stage_grid("a.b", stage)) == ("a.b", stage)
    assert stage_of("placement") is stage_of(".tuning") is stage_of("tuning") is None
    assert stage_of("mine.other") is None

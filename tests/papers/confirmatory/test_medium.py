"""M: four tasks, six variants, gates that say whether the baseline has learned anything."""

from __future__ import annotations

import pytest

from depthpde.papers.confirmatory.medium import EXPERIMENT, PROTOCOL, SIZES
from depthpde.records.statistics.sequential import looks
from depthpde.records.trivial_lines import PROBES
from depthpde.sweeps.study import confirmation_plan, tuning_plan


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "d3de69f3de3e038a"


def test_six_variants_on_four_tasks_with_rates_tuned_at_two_fifths():
    plan = EXPERIMENT.plan()
    runs = confirmation_plan(plan, {}, PROTOCOL.looks[0]).runs
    assert len(runs) == 6 * 4 * 6
    assert {(each.model.dim, each.model.blocks) for each in runs} == {(64, 2)}
    for each in tuning_plan(plan).runs:
        assert each.training.updates == round(0.4 * SIZES[each.task][1])


def test_gates_are_the_lines_that_need_no_sequence_model():
    marks = {each.task: each.least for each in PROTOCOL.gates}
    assert marks["text-mini"] == PROBES["text-mini"]["bag of bytes"]
    assert marks["image-mini"] == PROBES["image-mini"]["linear probe of the pixels"]
    assert marks["newsgroups-mini"] == 50.2 > PROBES["newsgroups-mini"]["bag of bytes"]
    assert PROTOCOL.least_tasks == 3


def test_the_levels_of_the_looks_spend_five_percent():
    found = looks([each.seeds for each in PROTOCOL.looks])
    assert [each.p for each in PROTOCOL.looks] == pytest.approx(found, abs=2e-4)

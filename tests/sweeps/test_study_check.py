"""A check says what was fixed, how far the runs are, and which of them may decide."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from depthpde.records.protocols.protocol import BaselineGate, EvidenceKind
from depthpde.records.protocols.steps import GateError
from depthpde.records.record import GRIDS
from depthpde.sweeps.study import (
    chosen_rates,
    compute_study,
    confirmation_plan,
    gate_plan,
    tuning_plan,
)
from depthpde.sweeps.study_check import OTHER_SETTINGS, check_study
from sweeps.test_study import PROTOCOL, TASK, TINY, a_plan, losses, pretend


def write_grids(results, plan):
    """Write the grids that `compute` would have written."""
    rates = chosen_rates(plan, results)
    tests = confirmation_plan(plan, rates, PROTOCOL.looks[0])
    for each in (tuning_plan(plan), gate_plan(plan, rates), tests):
        each.write(results)


def test_before_the_first_run_there_is_nothing_to_follow(tmp_path):
    found = check_study(a_plan(), tmp_path)
    assert (found.since, found.followed, found.status.tuned) == (None, True, (0, 8))
    assert "not laid down yet" in found.text()


def test_runs_that_followed_are_counted_by_what_they_may_be_used_for(tmp_path):
    compute_study(a_plan(), pretend(tmp_path, losses()), tmp_path)
    write_grids(tmp_path, a_plan())
    found = check_study(a_plan(), tmp_path)
    assert found.followed
    assert json.loads(json.dumps(found.to_dict()))["finished_seeds"] == 1
    assert found.kinds == {
        EvidenceKind.CONFIRMATORY: 2, EvidenceKind.TUNING: 9, EvidenceKind.EXPLORATORY: 0,
    }  # fmt: skip
    assert "look at 1 is due" in found.text()


def test_runs_of_another_protocol_are_exploratory_and_the_check_fails(tmp_path):
    compute_study(a_plan(), pretend(tmp_path, losses()), tmp_path)
    write_grids(tmp_path, a_plan())
    changed = a_plan(replace(PROTOCOL, stopping="when it looks good"))
    found = check_study(changed, tmp_path)
    assert (found.followed, found.changed) == (False, ("stopping",))
    assert found.kinds[EvidenceKind.EXPLORATORY] == 11
    assert "CHANGED   stopping" in found.text()
    assert f"{changed.study.digest}, another of its name was laid down" in found.text()
    assert f"made under protocol {PROTOCOL.digest}" in found.text()


def test_a_gate_that_failed_fails_the_check(tmp_path):
    gate = BaselineGate(task=TASK, endpoint="accuracy", least=60.0, words="counting")
    plan = a_plan(replace(PROTOCOL, gates=(gate,)))
    with pytest.raises(GateError):
        compute_study(plan, pretend(tmp_path, losses()), tmp_path)
    found = check_study(plan, tmp_path)
    assert not found.followed
    assert not (tmp_path / GRIDS / "tiny.json").exists()
    assert "FAILED" in found.text()


def test_records_with_the_digest_and_other_settings_show_that_the_plan_was_changed(tmp_path):
    compute_study(a_plan(), pretend(tmp_path, losses()), tmp_path)
    write_grids(tmp_path, a_plan())
    longer = replace(TINY, training=replace(TINY.training, updates=8))
    found = check_study(a_plan(bases={TASK: longer}), tmp_path)
    assert (found.followed, found.changed) == (False, ())  # the protocol's own text is the same
    assert found.reasons == {OTHER_SETTINGS: 11}
    for name in ("tiny", "tiny.tuning", "tiny.gates"):  # without the grids that would refuse it
        (tmp_path / GRIDS / f"{name}.json").unlink()
    assert check_study(a_plan(bases={TASK: longer}), tmp_path).reasons == {OTHER_SETTINGS: 11}
    assert check_study(a_plan(), tmp_path).followed

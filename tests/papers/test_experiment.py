"""An experiment plans its runs and says what its claims rest on."""

from __future__ import annotations

import pytest

from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.evidence import Missing
from depthpde.sweeps.scale import Scale
from papers.invented import evidence, judge


def test_a_scale_has_its_own_number_of_seeds_and_tasks_can_be_chosen():
    placement, architectures = EXPERIMENTS["placement"], EXPERIMENTS["architectures"]
    assert placement.plan(Scale.QUICK).seeds == (0, 1)
    assert placement.plan(Scale.MINI).seeds == tuple(range(6))
    assert architectures.plan(Scale.MINI).seeds == tuple(range(10))
    chosen = placement.plan(Scale.QUICK, seeds=[7], tasks=["text-mini"])
    assert (chosen.seeds, list(chosen.bases)) == ([7], ["text-mini"])


def test_refuses_other_tasks_where_its_own_are_the_question():
    with pytest.raises(ValueError, match=r"`--tasks`.*got text"):
        EXPERIMENTS["stabilization"].plan(tasks=["text"])


def test_refuses_to_plan_runs_where_a_machine_is_measured():
    with pytest.raises(ValueError, match=r"`NAME`.*got efficiency"):
        EXPERIMENTS["efficiency"].plan()


def test_what_is_missing_and_how_small_the_scale_is_are_said():
    gone = Missing("text-mini", "baseline", 9, "x", "pending")
    notes = judge(evidence({}, missing=[gone])).notes
    assert notes[0] == "1 of 17 runs are missing"
    assert "no number of Long Range Arena" in notes[1]
    whole = judge(evidence({}), "full").notes
    assert not any("missing" in note or "Long Range Arena" in note for note in whole)

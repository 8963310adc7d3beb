"""An experiment is computed, judged and written down; a part of it never replaces the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from depthpde.papers.confirmatory.conclusion import by_protocol
from depthpde.papers.registry import EXPERIMENTS
from depthpde.papers.reproduce import reproduce, reproduce_own, stored_findings
from depthpde.records.findings import Findings, read_findings
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast
from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.scale import Scale
from depthpde.sweeps.sweep import SweepOutcome
from papers.tiny import TINY

STANDARD = replace(
    EXPERIMENTS["discretization"],
    tasks=lambda scale: ("listops-mini",),
    bases=lambda scale, tasks: dict.fromkeys(tasks, TINY),
    seeds=dict.fromkeys(Scale, 1),
)
"""An experiment that reads weights, with one run."""


@pytest.fixture
def place(prepared, tmp_path):
    return Folders(tmp_path, None, prepared)


def by(folders):
    return lambda plan: compute(plan, InProcess(folders), retry_failed=True)


def test_an_experiment_is_computed_once_and_judged_again_without_training(place):
    lines = []
    asked = partial(reproduce, STANDARD, place, scale=Scale.QUICK)
    first = asked(compute=by(place), log=lines.append)
    assert lines[0] == "1 runs computed, 0 were recorded before"
    assert first.exit_code == 0
    path = place.results / "findings" / "discretization.json"
    assert read_findings(path) == first.findings
    path.unlink()
    assert asked() == first
    assert read_findings(path) == first.findings


def test_an_interrupted_experiment_is_not_judged(place):
    ended = reproduce(STANDARD, place, compute=lambda plan: SweepOutcome(interrupted=True))
    assert (ended.findings, ended.exit_code) == (None, 130)
    assert not (place.results / "findings").exists()


def test_runs_that_fail_are_told_and_nothing_is_judged(place):
    (run,) = STANDARD.plan(Scale.QUICK).runs
    (place.results / "runs" / run.id / "status.json").mkdir(parents=True)
    message = r"must hold all 1 runs .* got 0, the first failed because: .*; mend the cause"
    with pytest.raises(ValueError, match=message):
        reproduce(STANDARD, place, scale=Scale.QUICK, compute=by(place))
    assert not (place.results / "findings").exists()


def test_runs_that_wait_are_told_and_weights_are_not_judged(place):
    with pytest.raises(ValueError, match=r"must hold all 1 runs .* got 0, 1.*their data"):
        reproduce(STANDARD, place, compute=lambda plan: SweepOutcome(waiting=1))


def test_refuses_to_answer_by_a_part_of_what_is_recorded(tmp_path):
    asked = EXPERIMENTS["discretization"]
    asked.plan(Scale.QUICK, seeds=4).write(tmp_path)
    message = "`seeds` must be no fewer than .* holds for 'discretization', 4, got 2"
    with pytest.raises(ValueError, match=message):
        reproduce(asked, Folders(tmp_path), scale=Scale.QUICK, seeds=2)
    with pytest.raises(ValueError, match=r"'discretization'.*grid in"):
        reproduce(asked, Folders(tmp_path), scale=Scale.MINI)
    assert not (tmp_path / "runs").exists()


def test_refuses_to_judge_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must.*of 'placement' at this scale"):
        reproduce(EXPERIMENTS["placement"], Folders(tmp_path), scale=Scale.QUICK)


def test_what_a_machine_measured_is_read_again(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must.*measure it"):
        stored_findings(EXPERIMENTS["efficiency"], tmp_path)


GATED = replace(
    EXPERIMENTS["stencil"],
    tasks=lambda scale: ("listops-mini",),
    bases=lambda scale, tasks: dict.fromkeys(tasks, TINY),
    variants=EXPERIMENTS["stencil"].variants[:2],
)


def under():
    """Return a tiny experiment under a protocol of its own."""
    contrast = PlannedContrast(variant="rotary", against="baseline", endpoint="accuracy")
    protocol = replace(
        GATED.protocol, rates=(1e-3,), test_seeds=(100, 101), contrasts=(contrast,),
        looks=(Look(seeds=1, p=0.01), Look(seeds=2, p=0.04)), tuning_share=None, gates=(),
    )  # fmt: skip
    return replace(GATED, protocol=protocol, conclude=by_protocol(protocol))


def test_an_experiment_under_protocol_is_computed_to_a_look_and_judged_by_its_records(place):
    experiment = under()
    first = reproduce(experiment, place, compute=by(place))
    assert first.exit_code == 0
    assert "look 1 of 2 at 1 test seeds" in first.findings.notes[0]
    assert reproduce(experiment, place) == first, "from records alone"
    second = reproduce(experiment, place, seeds=2, compute=by(place))
    assert "look 2 of 2 at 2 test seeds" in second.findings.notes[0]
    with pytest.raises(ValueError, match=r"that.*of 'stencil', 1, 2, got 3"):
        reproduce(experiment, place, seeds=3, compute=by(place))


def test_records_are_not_judged_by_a_protocol_that_was_changed_after_them(place):
    first = reproduce(under(), place, compute=by(place)).findings
    question = replace(under(), protocol=replace(under().protocol, question="Another?"))
    with pytest.raises(ValueError, match=r"'stencil' must be the one.*differs in question"):
        reproduce(question, place)
    assert read_findings(place.results / "findings" / "stencil.json") == first


def test_a_protocol_leaves_no_choice_of_scale_but_a_smoke_run(place):
    with pytest.raises(ValueError, match="`--scale` must be left out for stencil, got 'full'"):
        reproduce(under(), place, scale=Scale.FULL)
    assert not place.results.joinpath("runs").exists()
    under().check_scale(Scale.QUICK)
    EXPERIMENTS["placement"].check_scale(Scale.FULL)
    first = reproduce(under(), place, compute=by(place)).findings
    assert first.scale == "mini"
    replace(first, scale="full").write(place.results)  # what it could be called before
    assert reproduce(under(), place).findings == first
    replace(first, scale="quick").write(place.results)
    with pytest.raises(ValueError, match="`scale` must be 'quick'"):
        reproduce(under(), place)


def test_a_gate_that_fails_is_what_an_experiment_ends_in(place):
    gate = BaselineGate(task="listops-mini", endpoint="accuracy", least=99.0, words="perfect")
    experiment = replace(under(), protocol=replace(under().protocol, gates=(gate,)))
    ended = reproduce(experiment, place, compute=by(place))
    assert ended.exit_code == 1
    assert ended.findings.notes[-1].endswith("above 99 (perfect): FAILED")
    assert "not tested" in ended.findings.claims[0].finding
    assert reproduce(experiment, place) == ended, "from records alone"


def test_a_study_whose_runs_fail_or_wait_tells_which_and_is_not_judged(place):
    lines = []
    failed = SweepOutcome(recorded=1, failed={"a" * 16: "out of memory", "b" * 16: "w"}, waiting=3)
    ended = reproduce(under(), place, compute=lambda plan: failed, log=lines.append)
    assert (ended.findings, ended.exit_code) == (None, 1)
    assert lines[-3:] == [
        "1 runs computed, 0 were recorded before",
        "2 failed, the first, aaaaaaaaaaaaaaaa, because: out of memory",
        "3 wait for their data",
    ]
    away = SweepOutcome(interrupted=True, left={"a" * 16: "SLURM job 17"})
    reproduce(under(), place, compute=lambda plan: away, log=lines.append)
    assert lines[-1] == "left: SLURM job 17"


def test_a_grid_of_ones_own_does_not_take_the_findings_of_an_experiment_of_its_name(place):
    """Both were called mini: the paper's findings were written over, and its grid was added to."""
    there = Findings(name="placement", question="Where?", scale="mini", claims=())
    path = there.write(place.results)
    plan = under().plan()
    own = replace(plan, name="placement", study=replace(plan.study, name="placement"))
    with pytest.raises(ValueError, match=r"`scale` must be 'mini'.*got 'own'.*another folder"):
        reproduce_own(own, place, compute=by(place))
    assert read_findings(path) == there
    assert not place.results.joinpath("runs").exists()


def test_an_interrupted_study_is_not_judged_and_one_without_records_is_refused(place):
    ended = reproduce(under(), place, compute=lambda plan: SweepOutcome(interrupted=True))
    assert (ended.findings, ended.exit_code) == (None, 130)
    command = f"depthpde sweep stencil --out {place.results}"
    with pytest.raises(FileNotFoundError, match=rf"must.*of 'stencil'.*{command}"):
        reproduce(under(), place)

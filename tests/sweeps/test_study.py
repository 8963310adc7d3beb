"""A study is computed stage by stage: rates by tuning seeds, gates before variants, then tests."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from depthpde.models.config import ModelConfig
from depthpde.records.protocols.protocol import BaselineGate, Look, PlannedContrast, StudyProtocol
from depthpde.records.protocols.steps import GateError
from depthpde.records.record import read_grids, read_records, run_folder
from depthpde.runs.presets import Preset
from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.grid import Plan, Variant
from depthpde.sweeps.study import (
    choose_look,
    chosen_rates,
    compute_study,
    confirmation_plan,
    gate_plan,
    passed_plan,
    study_status,
    tuning_plan,
)
from depthpde.sweeps.sweep import SweepOutcome
from depthpde.training.config import TrainingConfig

TASK = "listops-mini"
TINY = Preset(
    model=ModelConfig(dim=8, heads=2, hidden=16, blocks=1),
    training=TrainingConfig(updates=4, batch_size=8, warmup=2, log_every=1, evaluate_every=4),
)
PROTOCOL = StudyProtocol(
    name="tiny",
    question="Does it run?",
    tuning_seeds=(200, 201),
    test_seeds=(100, 101),
    rates=(1e-3, 1e-2),
    endpoints=("accuracy",),
    contrasts=(PlannedContrast(variant="placed", against="baseline", endpoint="accuracy"),),
    looks=(Look(seeds=1, p=0.01), Look(seeds=2, p=0.04)),
    gates=(BaselineGate(task=TASK, endpoint="accuracy", least=-1.0, words="nothing"),),
    tuning_share=0.5,
)


def a_plan(protocol=PROTOCOL, **changes):
    variants = [Variant("baseline"), Variant("placed", model={"positions": ("after_embedding",)})]
    values = {"variants": variants, "bases": {TASK: TINY}, "study": protocol}
    return Plan(name="tiny", question=protocol.question, **values | changes)


def pretend(results, losses, accuracy=50.0):
    """Write records of a stage as if they had been computed, by the loss of each rate."""

    def run(plan):
        for each in plan.runs:
            folder = run_folder(results, each.id)
            folder.mkdir(parents=True, exist_ok=True)
            config = {"format": 1, "id": each.id, "label": "", "config": each.to_dict()}
            (folder / "config.json").write_text(json.dumps(config))
            loss = losses[each.model.placements != (), each.training.learning_rate, each.seed]
            best = None if loss is None else {"accuracy": accuracy, "loss": loss, "update": 4}
            status = "diverged" if loss is None else "done"
            result = {"format": 1, "status": status, "test": None, "validation": best}
            (folder / "result.json").write_text(json.dumps(result))
        return SweepOutcome(recorded=len(plan.runs))

    return run


def losses(**changes):
    """Return a loss for every model, rate and seed: the small rate is the better one."""
    found = {
        (placed, rate, seed): rate + seed / 1e6
        for placed in (False, True)
        for rate in PROTOCOL.rates
        for seed in (*PROTOCOL.tuning_seeds, *PROTOCOL.test_seeds)
    }
    return found | changes.get("but", {})


def test_a_study_is_computed_once_and_every_record_says_under_which_protocol(prepared, tmp_path):
    folders, lines = Folders(tmp_path, None, prepared), []

    def stage(plan):
        return compute(plan, InProcess(folders))

    found = compute_study(a_plan(), stage, tmp_path, log=lines.append)
    # 2 variants × 2 rates × 2 seeds tuned, 1 gate, 2 variants × 1 test seed
    assert (found.recorded, found.skipped, found.exit_code) == (8 + 1 + 2, 0, 0)
    records = read_records(tmp_path).found.values()
    assert {each.config["study"] for each in records} == {PROTOCOL.digest}
    assert set(read_grids(tmp_path).by_name) == {"tiny", "tiny.tuning", "tiny.gates"}
    assert json.loads((tmp_path / "protocols" / "tiny.json").read_text())["digest"] in lines[0]
    again = compute_study(a_plan(), stage, tmp_path, seeds=2)
    # the second test seed alone; each run is counted once, though the baseline's choose rates twice
    assert (again.recorded, again.skipped) == (2, 8 + 1 + 2)
    status = study_status(a_plan(), tmp_path)
    assert (status.tuned, status.finished, status.look) == ((8, 8), 2, PROTOCOL.looks[1])


def test_a_stamp_makes_another_run_and_its_absence_changes_no_id():
    (cell, run), *_ = a_plan(study=None).cells
    stamped = replace(run, study=PROTOCOL.digest)
    assert run.study is None
    assert replace(stamped, study=None).id == run.id == cell.run != stamped.id
    with pytest.raises(ValueError, match="must not set 'study'"):
        Variant("forged", run={"study": PROTOCOL.digest})


def test_rates_are_chosen_by_tuning_seeds_and_never_by_test_seeds(tmp_path):
    better = {(True, 1e-2, seed): 1e-9 for seed in PROTOCOL.tuning_seeds}
    misleading = {(placed, 1e-2, seed): 0.0 for placed in (True, False) for seed in (100, 101)}
    compute_study(a_plan(), pretend(tmp_path, losses(but=better | misleading)), tmp_path)
    rates = chosen_rates(a_plan(), tmp_path)
    assert rates == {(TASK, "baseline"): 1e-3, (TASK, "placed"): 1e-2}
    cells = confirmation_plan(a_plan(), rates, PROTOCOL.looks[0]).cells
    assert {c.variant: run.training.learning_rate for c, run in cells} == {
        "baseline": 1e-3, "placed": 1e-2,
    }  # fmt: skip
    assert {c.seed for c, _ in cells} == {100}
    assert all(run.training.updates == 4 for _, run in cells)
    assert all(run.training.updates == 2 for run in tuning_plan(a_plan()).runs)


def test_one_diverged_tuning_seed_rules_a_rate_out(tmp_path):
    diverged = {(False, 1e-3, 201): None}
    compute_study(a_plan(), pretend(tmp_path, losses(but=diverged)), tmp_path)
    assert chosen_rates(a_plan(), tmp_path)[TASK, "baseline"] == 1e-2


def test_a_variant_that_diverges_at_every_rate_is_tested_at_the_smallest(tmp_path):
    lost = {(True, rate, seed): None for rate in PROTOCOL.rates for seed in (200, 201, 100, 101)}
    found = compute_study(a_plan(), pretend(tmp_path, losses(but=lost)), tmp_path)
    assert chosen_rates(a_plan(), tmp_path)[TASK, "placed"] == min(PROTOCOL.rates)
    assert found.exit_code == 0
    assert study_status(a_plan(), tmp_path).look == PROTOCOL.looks[0]


def test_a_gate_that_fails_stops_before_any_variant_is_run(tmp_path):
    gate = BaselineGate(task=TASK, endpoint="accuracy", least=60.0, words="counting")
    plan = a_plan(replace(PROTOCOL, gates=(gate,)))
    with pytest.raises(GateError, match=r"50, above 60 \(counting\): FAILED"):
        compute_study(plan, pretend(tmp_path, losses()), tmp_path)
    assert {
        c.config["model"]["positions"] == [] for c in read_records(tmp_path).found.values()
    } == {True}
    (failed,) = study_status(plan, tmp_path).failed
    assert failed.found == 50.0


def test_a_baseline_that_diverges_does_not_pass_a_gate(tmp_path):
    """It ended without an accuracy, and counted as not measured yet: every stage was run."""
    lost = {(False, rate, seed): None for rate in PROTOCOL.rates for seed in range(1000)}
    with pytest.raises(GateError, match=r"accuracy: diverged, above -1 \(nothing\): FAILED"):
        compute_study(a_plan(), pretend(tmp_path, losses(but=lost)), tmp_path)
    status = study_status(a_plan(), tmp_path)
    assert status.stopped
    assert len(status.failed) == 1


def test_without_a_share_the_gate_is_a_run_that_was_tuned():
    plan = a_plan(replace(PROTOCOL, tuning_share=None))
    (gate,) = gate_plan(plan, {(TASK, "baseline"): 1e-3}).runs
    assert gate.id in {each.id for each in tuning_plan(plan).runs}


def test_a_protocol_that_changed_after_its_first_run_is_refused(tmp_path):
    compute_study(a_plan(), pretend(tmp_path, losses()), tmp_path)
    changed = a_plan(replace(PROTOCOL, rates=(1e-3, 2e-3)))
    with pytest.raises(ValueError, match="differs in rates; give the changed protocol a new name"):
        compute_study(changed, pretend(tmp_path, losses()), tmp_path)


def test_a_stage_that_is_cut_short_is_not_followed_by_another(tmp_path):
    asked = []

    def interrupted(plan):
        asked.append(plan.name)
        return SweepOutcome(interrupted=True)

    assert compute_study(a_plan(), interrupted, tmp_path).exit_code == 130
    assert asked == ["tiny.tuning"]
    assert study_status(a_plan(), tmp_path).tuned == (0, 8)
    there = f" --out {tmp_path}"
    message = f"tuning runs of 'tiny'.* 2 of 2 cells.*p tiny{there}$"
    with pytest.raises(FileNotFoundError, match=message):
        chosen_rates(a_plan(), tmp_path)
    with pytest.raises(FileNotFoundError, match=rf"depthpde sweep '/my grids/t.yaml'{there}$"):
        chosen_rates(a_plan(file="/my grids/t.yaml"), tmp_path)


def test_what_goes_on_elsewhere_after_an_interruption_is_passed_on(tmp_path):
    left = {"a" * 16: "SLURM job 17"}
    ended = compute_study(
        a_plan(), lambda plan: SweepOutcome(interrupted=True, left=dict(left)), tmp_path
    )
    assert ended.left == left


def test_a_variant_with_settings_of_the_protocol_is_refused_before_the_first_run(tmp_path):
    slow = a_plan(variants=[Variant("baseline"), Variant("placed", training={"updates": 9})])
    with pytest.raises(ValueError, match="`training` of 'placed' must leave updates"):
        compute_study(slow, pretend(tmp_path, losses()), tmp_path)
    assert not list(tmp_path.iterdir()), "nothing is laid down, nothing computed"


def test_what_the_protocol_leaves_no_room_for_is_refused(tmp_path):
    with pytest.raises(ValueError, match="that of a look of 'tiny', 1, 2, got 3"):
        choose_look(PROTOCOL, 3)
    with pytest.raises(ValueError, match="`training` of 'slow' must leave learning_rate"):
        tuning_plan(a_plan(variants=[Variant("slow", training={"learning_rate": 1e-4})]))
    with pytest.raises(ValueError, match="`study` of 'tiny' must be a protocol, got None"):
        tuning_plan(a_plan(study=None))
    with pytest.raises(ValueError, match="stage by stage with `compute_study`"):
        compute(a_plan(), InProcess(Folders(tmp_path)))


def test_a_task_below_its_gate_is_left_out_where_the_protocol_says_so(tmp_path):
    gates = tuple(
        BaselineGate(task=task, endpoint="accuracy", least=least, words="w")
        for task, least in ((TASK, 60.0), ("text-mini", 40.0))
    )
    protocol = replace(PROTOCOL, gates=gates, least_tasks=1)
    plan = a_plan(protocol, bases={TASK: TINY, "text-mini": TINY})
    compute_study(plan, pretend(tmp_path, losses()), tmp_path)
    assert list(passed_plan(plan, tmp_path).bases) == ["text-mini"]
    status = study_status(plan, tmp_path)
    assert ([each.gate.task for each in status.failed], status.stopped) == ([TASK], False)
    assert (status.tuned, status.finished) == ((8, 8), 1)
    placed = [r for r in read_records(tmp_path).found.values() if r.config["model"]["positions"]]
    assert {each.task for each in placed} == {"text-mini"}
    with pytest.raises(GateError, match="got listops-mini accuracy: 50"):
        compute_study(
            replace(plan, study=replace(protocol, name="strict", least_tasks=2)),
            pretend(tmp_path, losses()),
            tmp_path,
        )

"""A plan is computed in one way: what lacks its data waits, and that is logged once."""

from __future__ import annotations

import json

import pytest

from depthpde.models.config import ModelConfig
from depthpde.records.record import read_grids, read_records
from depthpde.runs.presets import Preset
from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Folders, InProcess
from depthpde.sweeps.grid import Plan, Variant

BASELINE = Variant("baseline")
EMBEDDING = Variant("after embedding", model={"positions": ("after_embedding",)})


@pytest.fixture
def plan(run):
    """Return two variants of a task that is prepared, and of one whose files are missing."""
    base = Preset(model=ModelConfig(dim=8, blocks=1, heads=2), training=run.training)
    return Plan(
        name="tiny",
        question="Does it run?",
        variants=[BASELINE, EMBEDDING],
        bases={"listops-mini": base, "text-mini": base},
        seeds=1,
    )


def part(plan, task):
    return Plan(
        name="tiny", question="?", variants=plan.variants, bases={task: plan.bases[task]}, seeds=1
    )


def test_runs_without_data_wait_and_that_is_logged_once_before_any_starts(plan, prepared, tmp_path):
    lines = []
    executor = InProcess(Folders(tmp_path / "out", tmp_path, prepared))

    def printed(ended):
        assert sum(line.startswith("without text-mini") for line in lines) == 1

    outcome = compute(plan, executor, log=lines.append, callback=printed)
    assert (outcome.recorded, outcome.waiting, outcome.failed) == (2, 2, {})
    assert outcome.exit_code == 1
    assert lines[-1].startswith("without text-mini, which cannot be prepared: text-mini needs")
    assert {each.task for each in read_records(tmp_path / "out").found.values()} == {"listops-mini"}
    assert read_grids(tmp_path / "out").by_name["tiny"] == plan.grid


def test_a_second_time_nothing_is_computed(plan, prepared, tmp_path):
    executor = InProcess(Folders(tmp_path, None, prepared))
    asked = part(plan, "listops-mini")
    assert compute(asked, executor).recorded == 2
    again = compute(asked, executor)
    assert (again.recorded, again.skipped, again.exit_code) == (0, 2, 0)


def test_without_any_data_the_reason_is_raised_before_anything_runs(plan, prepared, tmp_path):
    executor = InProcess(Folders(tmp_path / "out", tmp_path, prepared))
    with pytest.raises(FileNotFoundError, match="text-mini needs the IMDb reviews"):
        compute(part(plan, "text-mini"), executor)
    assert not (tmp_path / "out" / "runs").exists()


def test_a_run_that_failed_before_is_tried_again_where_asked(plan, prepared, tmp_path):
    asked = part(plan, "listops-mini")
    run = asked.runs[0]
    folder = tmp_path / "runs" / run.id
    folder.mkdir(parents=True)
    output = {"format": 1, "id": run.id, "label": run.label, "config": run.to_dict()}
    (folder / "config.json").write_text(json.dumps(output))
    (folder / "status.json").write_text(json.dumps({"state": "failed", "error": "no memory"}))
    executor = InProcess(Folders(tmp_path, None, prepared))
    assert list(compute(asked, executor).failed.values()) == ["no memory"]
    assert compute(asked, executor, retry_failed=True).recorded == 1

"""R1: five variants, rates of their own, twelve fresh seeds, judged by the time of escape."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.papers.confirmatory.pathfinder import EXPERIMENT, FREE, PROTOCOL, TASK, VARIANTS
from depthpde.papers.experiment import Case
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record
from depthpde.records.verdicts import Outcome
from depthpde.sweeps.scale import Scale
from depthpde.sweeps.study import tuning_plan


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "d49326b0cb129890"


def test_tuning_takes_every_rate_for_every_variant_and_a_smoke_run_no_protocol():
    plan = EXPERIMENT.plan()
    runs = tuning_plan(plan).runs
    assert len(runs) == 5 * 4 * 2
    assert {each.training.updates for each in runs} == {1800}
    assert {each.seed for each in runs} == {200, 201}
    assert EXPERIMENT.plan(Scale.QUICK).study is None


def test_the_free_stencil_starts_where_diffusion_does():
    placed = {each.label: each.model["layer"] for each in VARIANTS if "layer" in each.model}
    ratios = {each["initial_ratio"] for each in placed.values()}
    assert ratios == {0.25}
    assert placed[FREE.label]["taps"] == "free"


@pytest.fixture
def escapes(tmp_path):
    """Return evidence in which one variant escapes at update 200 and all others at 1000."""

    def made(sooner):
        runs = {
            (TASK, each.label): {
                seed: _record(tmp_path, each.label, seed, 200 if each.label == sooner else 1000)
                for seed in PROTOCOL.test_seeds
            }
            for each in VARIANTS
        }
        labels = tuple(each.label for each in VARIANTS)
        return Evidence(
            name="pathfinder", question="?", baseline="baseline", tasks=(TASK,), variants=labels,
            words={}, runs=runs, missing=(),
        )  # fmt: skip

    return made


def _record(place: Path, label: str, seed: int, escape: int) -> Record:
    folder = place / label.replace(" ", "-") / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    points = [
        {
            "kind": "point",
            "update": u,
            "loss": 0.5,
            "accuracy": 95.0 if u >= escape + seed else 52.0,
        }
        for u in range(50, 1801, 50)
    ]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, points)) + "\n")
    training = {"batch_size": 16, "log_every": 50}
    config = {"task": TASK, "seed": seed, "study": PROTOCOL.digest, "training": training}
    result = {"status": "done", "test": {"accuracy": 95.0, "targets": 4000}}
    return Record(folder, folder.name, label, config, {}, {}, result)


def test_escape_times_decide(escapes):
    found = EXPERIMENT.judge(Case(scale="mini", evidence=escapes("after embedding")))
    assert [each.verdict for each in found.claims] == [Outcome.SUPPORTED] * 4
    assert found.claims[0].effect == -800
    late = EXPERIMENT.judge(Case(scale="mini", evidence=escapes("baseline")))
    assert late.claims[0].verdict is Outcome.CONTRADICTED
    with_gap = escapes_without(escapes, "rotary")
    waiting = EXPERIMENT.judge(Case(scale="mini", evidence=with_gap))
    assert {each.verdict for each in waiting.claims} == {Outcome.WAITING}


def escapes_without(escapes, label):
    found = escapes("fixed blur")
    return replace(found, runs={cell: r for cell, r in found.runs.items() if cell[1] != label})

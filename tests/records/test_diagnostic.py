"""A measure foretells only if it goes along within tasks, and beyond chance."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from depthpde.records.diagnostic import foretell
from depthpde.records.evidence import Evidence
from depthpde.records.record import Record

TASKS = ("text-mini", "image-mini", "listops-mini")
VARIANTS = tuple(f"position {k}" for k in range(7))


NONLINEAR = "Paper A: where diffusion and attention conflict, it harms (nonlinear commutator)"
FROZEN = "Paper A: where diffusion and attention conflict, it harms (frozen commutator)"


def make(
    folder: Path, accuracy, commutator, *, tasks=TASKS, variants=VARIANTS, seeds=6
) -> Evidence:
    """Invent runs with a known change of accuracy and a known commutator."""
    runs = {}
    for task in tasks:
        for at, variant in enumerate(("baseline", *variants)):
            place = folder / f"{task}-{at}"
            place.mkdir()
            output = {
                "depth": {"coupling.nonlinear": [commutator(task, at)], "coupling.frozen": [1.0]},
                "layers": {"coupling.moved": {"a": commutator(task, at)}},
            }
            (place / "probe.json").write_text(json.dumps(output))
            config = {"task": task, "seed": 0, "model": {}}
            result = {"status": "done", "test": {"accuracy": accuracy(task, at)}}
            record = Record(place, place.name, variant, config, {}, {}, result)
            runs[task, variant] = dict.fromkeys(range(seeds), record)
    return Evidence(
        name="commutation", question="?", baseline="baseline", tasks=tasks,
        variants=("baseline", *variants), words={}, runs=runs, missing=(),
    )  # fmt: skip


def test_what_always_goes_along_is_foretold(tmp_path):
    evidence = make(tmp_path, lambda task, at: 50.0 - at, lambda task, at: at**2)
    found = {each.claim: each for each in foretell(evidence)}
    assert found[NONLINEAR].correlation == pytest.approx(-1.0)
    assert found[NONLINEAR].p < 0.001
    assert found[NONLINEAR].cells == 21
    assert found[FROZEN].correlation == 0.0  # the same everywhere says nothing


def test_differences_between_tasks_alone_do_not_count(tmp_path):
    random = np.random.default_rng(3)
    noise = {(task, at): random.normal() for task in TASKS for at in range(8)}
    level = dict(zip(TASKS, (0.0, 20.0, 40.0), strict=True))
    evidence = make(
        tmp_path,
        lambda task, at: level[task] + noise[task, at],
        lambda task, at: -level[task] + random.normal(),
    )
    found = foretell(evidence)[0]
    assert abs(found.correlation) < 0.5
    assert found.p > 0.05


def test_a_measure_that_goes_the_other_way_does_not_confirm(tmp_path):
    evidence = make(tmp_path, lambda task, at: 50.0 + at, lambda task, at: at)
    assert foretell(evidence)[0].correlation == pytest.approx(1.0)


def test_runs_that_were_not_examined_are_left_out(tmp_path):
    evidence = make(tmp_path, lambda task, at: 50.0 - at, lambda task, at: at)
    for path in tmp_path.glob("*/probe.json"):
        path.unlink()
    assert foretell(evidence) == []


def test_p_counts_the_orders_that_were_always_drawn(tmp_path):
    """The draws of one table after another: p values in committed findings rest on them."""
    random = np.random.default_rng(5)
    change, measure = (random.integers(0, 4, (3, 8)).astype(float) for _ in range(2))  # with ties
    row = {task: at for at, task in enumerate(TASKS)}
    found = foretell(
        make(
            tmp_path,
            lambda task, at: 50.0 + change[row[task], at] * (at > 0),
            lambda task, at: measure[row[task], at],
        )
    )[0]
    tables = []
    for task in TASKS:
        ranks = rankdata([measure[row[task], 1:], change[row[task], 1:]], axis=1)
        tables.append(ranks - ranks.mean(axis=1, keepdims=True))
    seen = sum(a @ b for a, b in tables)
    drawn = np.random.default_rng(0)
    sums = [sum(a @ drawn.permutation(b) for a, b in tables) for _ in range(9999)]
    assert found.p == (1 + sum(abs(each) >= abs(seen) - 1e-9 for each in sums)) / 10000
    sizes = np.sum([(table**2).sum(axis=1) for table in tables], axis=0)
    assert found.correlation == pytest.approx(seen / np.sqrt(sizes.prod()))

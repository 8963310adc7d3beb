"""Scores of the committed runs, and how much of the data they saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from depthpde.records.evidence import gather
from depthpde.records.record import Cell, Grid
from depthpde.records.scores import scores_of


def test_accuracies_are_those_of_the_records(committed, gathered):
    grids, records = committed
    scores = scores_of(gathered["placement"])
    assert set(scores) == set(grids["placement"].variants)
    for cell in grids["placement"].cells[:20]:
        assert scores[cell.variant][cell.task][cell.seed] == records[cell.run].accuracy


def test_losses_are_in_nats(gathered):
    losses = scores_of(gathered["placement"], "loss")
    assert np.mean(list(losses["baseline"]["text-mini"].values())) == pytest.approx(
        np.log(2), abs=0.05
    )


def test_what_diverged_counts_as_the_largest_class_and_has_no_loss(committed):
    _, records = committed
    record = next(iter(records.values()))
    broken = replace(
        record, result={"status": "diverged", "test": None, "trivial": {"majority": 12}}
    )
    grid = Grid("g", "?", "v", (Cell("t", "v", 0, "r"), Cell("t", "v", 1, "gone")), {"v": {}})
    assert scores_of(gather(grid, {"r": broken})) == {"v": {"t": {0: 12.0}}}
    assert scores_of(gather(grid, {"r": broken}), "loss") == {}
    kept = {"test": {"accuracy": 25.0, "loss": 2e9}, "trivial": {"majority": 12}}
    late = replace(record, result={"status": "diverged"} | kept)
    assert scores_of(gather(grid, {"r": late})) == {"v": {"t": {0: 12.0}}}
    assert scores_of(gather(grid, {"r": late}), "loss") == {}
    whole = replace(record, result={"status": "done"} | kept)
    assert scores_of(gather(grid, {"r": whole})) == {"v": {"t": {0: 25.0}}}
    unfinished = replace(record, result=None)
    assert scores_of(gather(grid, {"r": unfinished})) == {}
    nameless = replace(record, result={"status": "diverged", "test": None, "trivial": {}})
    assert scores_of(gather(grid, {"r": nameless})) == {}


@pytest.mark.parametrize(
    ("task", "epochs"),
    [("listops-mini", 1.33), ("text-mini", 0.56), ("retrieval-mini", 0.40), ("image-mini", 0.27)],
)
def test_the_runs_see_hardly_more_than_one_epoch(committed, task, epochs):
    from depthpde.data.tasks import TASKS

    grids, records = committed
    run = next(c.run for c in grids["placement"].cells if c.task == task)
    training = records[run].config["training"]
    seen = training["updates"] * training["batch_size"] * training["accumulate"]
    assert seen / TASKS[task].splits["train"] == pytest.approx(epochs, abs=0.006)


def test_an_unknown_endpoint_is_refused(gathered):
    with pytest.raises(ValueError, match="accuracy, loss"):
        scores_of(gathered["placement"], "speed")

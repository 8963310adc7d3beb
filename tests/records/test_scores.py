"""Scores of the committed runs, and how much of the data they saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from depthpde.records.record import Cell, Grid
from depthpde.records.scores import epochs_seen, read_curves, read_predictions, read_scores


def test_accuracies_are_those_of_the_records(committed):
    grids, records = committed
    grid = grids["placement"]
    scores = read_scores(grid, records)
    assert set(scores) == set(grid.variants)
    for cell in grid.cells[:20]:
        assert scores[cell.variant][cell.task][cell.seed] == records[cell.run].accuracy


def test_losses_are_in_nats(committed):
    grids, records = committed
    losses = read_scores(grids["placement"], records, "loss")
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
    assert read_scores(grid, {"r": broken}) == {"v": {"t": {0: 12.0}}}
    assert read_scores(grid, {"r": broken}, "loss") == {}
    unfinished = replace(record, result=None)
    assert read_scores(grid, {"r": unfinished}) == {}
    nameless = replace(record, result={"status": "diverged", "test": None, "trivial": {}})
    assert read_scores(grid, {"r": nameless}) == {}


def test_curves_are_the_looks_at_the_validation_split(committed):
    grids, records = committed
    curves = read_curves(grids["multiscale-positions"], records)
    assert list(curves) == [500, 1000, 1500, 2000]
    assert set(curves[500]) == set(grids["multiscale-positions"].variants)


def test_predictions_give_the_recorded_number_of_examples(committed):
    grids, records = committed
    said = read_predictions(grids["positional"], records)
    assert {len(each) for each in said["no sites"]["text-mini"].values()} == {4000}


@pytest.mark.parametrize(
    ("task", "epochs"),
    [("listops-mini", 1.33), ("text-mini", 0.56), ("retrieval-mini", 0.40), ("image-mini", 0.27)],
)
def test_the_runs_see_hardly_more_than_one_epoch(committed, task, epochs):
    from depthpde.data.tasks import TASKS

    grids, records = committed
    run = next(c.run for c in grids["placement"].cells if c.task == task)
    seen = epochs_seen(records[run].config, TASKS[task].splits["train"])
    assert seen == pytest.approx(epochs, abs=0.006)


def test_wrong_calls_are_refused(committed):
    grids, records = committed
    with pytest.raises(ValueError, match=r"examples.*0"):
        epochs_seen({"training": {"updates": 1, "batch_size": 1}}, 0)
    with pytest.raises(ValueError, match="training"):
        epochs_seen({}, 10)
    with pytest.raises(ValueError, match="accuracy, loss"):
        read_scores(grids["placement"], records, "speed")

import json

import pytest

from depthpde.records.learning_curves import join, read_validations, validation_curve
from depthpde.records.record import Reading


def test_the_band_runs_from_the_worst_to_the_best_seed():
    found = join([[(1, 10.0), (2, 20.0)], [(1, 14.0), (2, 18.0)]])
    assert found.updates == (1, 2)
    assert (found.mean, found.low, found.high, found.n) == ((12, 19), (10, 18), (14, 20), 2)


def test_a_run_that_ended_early_keeps_its_last_value():
    found = join([[(1, 10.0)], [(1, 20.0), (2, 30.0)]])
    assert found.mean == (15.0, 20.0)


def test_no_mean_is_drawn_before_every_run_has_begun():
    assert join([[(5, 10.0)], [(1, 20.0), (5, 30.0)], []]).updates == (5,)


def test_nothing_joined_is_nothing():
    assert join([]).updates == ()


def test_the_course_is_that_of_the_records(evidence):
    runs = list(evidence.runs["text-mini", "baseline"].values())
    found = validation_curve(runs)
    assert found.updates == tuple(range(100, 801, 100))
    last = [read_validations(each).value[-1][1] for each in runs]
    assert found.mean[-1] == pytest.approx(sum(last) / 6)


def test_a_curve_that_was_not_written_whole_is_left_out_and_told(results):
    from depthpde.records.results import read_results

    def record():
        return next(iter(read_results(results).records.values()))

    path = record().folder / "metrics.jsonl"
    good = path.read_text()
    path.write_text(good + '{"kind": "validation", "upd')
    assert len(read_validations(record()).value) == 8
    assert read_validations(record()).broken is None
    path.write_text(good + "{half\n")
    read = read_validations(record())
    printed = read.broken
    assert read.value == []
    assert (printed.path, "line 17, must be JSON" in printed.reason) == (path, True)
    path.write_text(json.dumps({"kind": "validation", "update": 1, "accuracy": None}) + "\n")
    read = read_validations(record())
    printed = read.broken
    assert read.value == []
    assert printed.reason.startswith("every validation must tell an update and an accuracy, but ")
    path.unlink()
    assert read_validations(record()) == Reading([])

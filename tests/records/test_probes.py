import json
from dataclasses import replace

import pytest

from depthpde.records.probes import (
    PROBE,
    WORDS,
    depth_curves,
    measured_bands,
    measured_transfer,
    read_probe,
)
from depthpde.records.record import Reading, Record


def record_of(folder, output):
    folder.mkdir(exist_ok=True)
    (folder / PROBE).write_text(output if isinstance(output, str) else json.dumps(output))
    return Record(folder, folder.name, "", {"task": "t", "seed": 0}, {}, {}, {})


def test_measures_stand_in_the_order_of_the_page_and_join_over_runs(tmp_path):
    runs = [
        record_of(tmp_path / str(i), {"depth": {"own": [0.0, i], "drift.cosine": [1.0, 0.5 - i]}})
        for i in range(2)
    ]
    found = depth_curves(runs)
    assert list(found) == ["drift.cosine", "own"]
    assert found["drift.cosine"].updates == (0, 1)
    assert found["drift.cosine"].mean == (1.0, 0.0)
    assert found["own"].high == (0.0, 1.0)


def test_all_measures_of_the_synthetic_probe_are_found(evidence):
    assert list(depth_curves(evidence.records("baseline"))) == list(WORDS)


def test_measured_gains_and_bands_are_averaged(tmp_path):
    runs = [
        record_of(
            tmp_path / str(i),
            {
                "transfer": {"here": {"omega": [0, 1], "gain": [1, i]}},
                "bands": {"here": {"before": [4, 4, 4, 4], "after": [i, i, i, i]}},
            },
        )
        for i in range(2)
    ]
    assert measured_transfer(runs) == {"here": ([0.0, 1.0], [1.0, 0.5])}
    assert measured_bands(runs) == {"here": {"before": [4.0] * 4, "after": [0.5] * 4}}
    assert list(measured_bands(runs)["here"]) == ["before", "after"]


@pytest.mark.parametrize(
    "output",
    [
        "{half",
        [],
        {"depth": 3, "transfer": [], "bands": ""},
        {"depth": {"x": "y"}, "transfer": {"a": {"omega": [1], "gain": [1, 2]}}},
        {"depth": {"x": [None]}, "bands": {"a": {"before": [1, 2]}, "b": 4}},
    ],
)
def test_what_has_another_form_is_left_out(tmp_path, output):
    runs = [record_of(tmp_path / "run", output)]
    assert depth_curves(runs) == measured_transfer(runs) == measured_bands(runs) == {}


def test_gains_at_different_frequencies_are_not_averaged(tmp_path):
    runs = [
        record_of(tmp_path / str(i), {"transfer": {"here": {"omega": [i], "gain": [1]}}})
        for i in range(2)
    ]
    assert measured_transfer(runs) == {}


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("{half", "a probe must be JSON, but "),
        ("[" * 100_000, "a probe must be JSON, but "),
        ([], "a probe must be an object, got list"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path, output, why):
    read = read_probe(record_of(tmp_path / "run", output))
    printed = read.broken
    assert (read.value, printed.path) == ({}, tmp_path / "run" / PROBE)
    assert printed.path == tmp_path / "run" / PROBE
    assert printed.reason.startswith(why)


def test_no_probe_and_a_whole_one_are_nothing_to_tell(tmp_path):
    record = record_of(tmp_path / "run", {"depth": {}})
    assert read_probe(record) == Reading({"depth": {}})
    (tmp_path / "run" / PROBE).unlink()
    assert read_probe(replace(record)) == Reading({})


def test_a_finished_run_is_parsed_once_and_a_running_one_whenever_it_is_asked(tmp_path):
    done = record_of(tmp_path / "run", {"depth": {}})
    running = replace(done, result=None)
    for record in (done, running):
        assert read_probe(record).value == {"depth": {}}
    (tmp_path / "run" / PROBE).write_text("{}")
    assert read_probe(done).value == {"depth": {}}
    assert read_probe(running).value == {}

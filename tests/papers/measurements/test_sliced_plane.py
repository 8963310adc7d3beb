"""A sliced information plane comes from a config, from weights, and from nothing else."""

import json
import shutil
from dataclasses import replace

import pytest

from depthpde.data.catalog import prepare
from depthpde.data.tasks import TASKS
from depthpde.papers.measurements.observation import Observation
from depthpde.papers.measurements.sliced_plane import sliced_plane
from papers.tiny import case_of, tiny_plan
from runs.conftest import SMALL

LOOK = Observation(examples=4, informed=64, tangents=0, slices=2)


@pytest.fixture(scope="module")
def enough(folders, tmp_path_factory):
    """Return folders whose test split is large enough for an estimate."""
    out = tmp_path_factory.mktemp("enough")
    prepare(replace(TASKS["listops-mini"], splits=SMALL | {"test": 64}), out=out)
    return replace(folders, prepared=out)


@pytest.fixture
def copied(folders, tmp_path):
    """Return a record without its weights, as records are committed, and the folder with them."""
    source = next(iter(case_of(tiny_plan(), folders).records.values()))
    bare = tmp_path / "runs" / source.id
    shutil.copytree(source.folder, bare, ignore=shutil.ignore_patterns("model", "information.json"))
    return replace(source, folder=bare), folders.results


def test_a_config_is_enough_for_the_start(copied, enough):
    record, _ = copied
    found = sliced_plane(record, enough, LOOK)
    assert len(found["start"]) == 3
    assert found["end"] is None
    assert json.loads((record.folder / "information.json").read_text()) == found
    for side in ("input", "label"):
        assert {"value", "null", "recovered", "known"} <= set(found["start"][0][side])


def test_weights_computed_again_give_the_end_and_are_used_once(copied, enough):
    record, weights = copied
    start = sliced_plane(record, enough, LOOK)["start"]
    found = sliced_plane(record, enough, LOOK, weights=weights)
    assert found["start"] == start
    assert len(found["end"]) == 3
    assert found["end"] != start
    path = record.folder / "information.json"
    path.write_text(json.dumps(found | {"end": "read, not estimated"}))
    assert sliced_plane(record, enough, LOOK, weights=weights)["end"] == "read, not estimated"
    more = replace(LOOK, slices=3)
    assert sliced_plane(record, enough, more)["slices"] == 3, "another look estimates anew"


def test_weights_of_another_run_are_refused(copied, enough):
    record, weights = copied
    path = record.folder / "predictions.u8"
    path.write_bytes(bytes(len(path.read_bytes())))
    with pytest.raises(ValueError, match=f"{record.id}.*other predictions.*environment.json"):
        sliced_plane(record, enough, LOOK, weights=weights)


@pytest.mark.parametrize("given", [{"slices": 0}, {"informed": 49}])
def test_nothing_is_estimated_where_it_is_left_out(copied, enough, given):
    record, _ = copied
    assert sliced_plane(record, enough, replace(LOOK, **given)) is None
    assert not (record.folder / "information.json").exists()


def test_too_few_examples_estimate_nothing(copied, folders):
    assert sliced_plane(copied[0], folders, LOOK)["start"] is None, "48 of 50"

"""What is measured of a run is kept beside its record, and measured once."""

import dataclasses
import json

import pytest
import torch

from depthpde.data.catalog import load
from depthpde.papers.measurements.observation import Observation, measure, observe, trained_model
from papers.tiny import case_of, tiny_plan


def test_what_was_measured_is_kept_beside_the_record(folders):
    record = next(iter(case_of(tiny_plan(), folders).records.values()))
    look = Observation(examples=4, informed=0, tangents=0)
    found = observe(record, folders, look)
    path = record.folder / "dynamics.json"
    assert json.loads(path.read_text()) == found
    path.write_text(json.dumps(found | {"end": "read, not measured"}))
    assert observe(record, folders, look)["end"] == "read, not measured"
    assert observe(record, folders, Observation(examples=5, informed=0, tangents=0)) != found
    path.unlink()


def test_a_measure_shows_every_layer_of_a_model(folders, prepared):
    split = load("listops-mini", "test", out=prepared)
    model = tiny_plan().runs[0].build().eval()
    found = measure(model, split, Observation(examples=4, informed=0, tangents=1))
    for name in ("cosine", "centred", "cka", "rank", "token", "size", "gradient"):
        assert len(found[name]) == 3, name
    assert found["centred"][0] == pytest.approx(1.0, abs=1e-5)
    assert found["lyapunov"] is not None
    assert all(each.grad is None for each in model.parameters())
    with torch.no_grad():
        model.encoder.blocks[0].reaction.out.bias.fill_(float("nan"))
    assert measure(model, split, Observation(examples=4, informed=0, tangents=0)) is None


def test_a_record_without_weights_cannot_be_measured(folders, tmp_path):
    source = next(iter(case_of(tiny_plan(), folders).records.values()))
    bare = dataclasses.replace(source, folder=tmp_path)
    with pytest.raises(FileNotFoundError, match="must hold the weights that run"):
        trained_model(bare)

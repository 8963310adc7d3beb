"""What is told of a finished model is what it does."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from depthpde.data.catalog import load, prepare
from depthpde.data.tasks import TASKS
from depthpde.models.config import ModelConfig
from depthpde.runs.examine import examine
from depthpde.runs.execute import execute
from depthpde.runs.run import RunConfig

LAYER = "encoder.placed.layers.after_embedding.layer"


@pytest.fixture
def judged(prepared):
    return load("listops-mini", "test", out=prepared)


def with_layer(run, layer):
    return replace(
        run, model=ModelConfig(dim=8, blocks=1, positions=run.model.positions, layer=layer)
    )


def test_the_gain_of_a_layer_is_its_multiplier(run, judged):
    blur = with_layer(run, {"kind": "blur", "initial_ratio": 0.2})
    found = examine(blur.build(), judged)["transfer"][LAYER]
    for omega, gain in zip(found["omega"], found["gain"], strict=True):
        assert gain == pytest.approx(abs(1 - 4 * 0.2 * math.sin(omega / 2) ** 2), abs=1e-5)


def test_diffusion_takes_from_high_bands_and_leaves_the_mean(run, judged):
    diffusion = with_layer(run, {"kind": "diffusion", "bound": 0.5, "initial_ratio": 0.25})
    bands = examine(diffusion.build(), judged)["bands"][LAYER]
    shares = [after / before for before, after in zip(bands["before"], bands["after"], strict=True)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.8
    assert shares[-1] < 0.05


def test_a_mix_is_told_as_one_layer_and_a_gated_one_without_a_gain(run, judged):
    mixed = examine(with_layer(run, "multiscale").build(), judged)
    assert list(mixed["transfer"]) == [LAYER]
    gated = examine(with_layer(run, {"kind": "multiscale", "gated": True}).build(), judged)
    assert gated["transfer"] == {}
    assert list(gated["bands"]) == [LAYER]


def test_the_model_is_left_as_it_was(run, judged):
    model = run.build().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    examine(model, judged)
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())


def test_the_record_holds_the_measures_by_depth(run, prepared, tmp_path):
    record = execute(run, tmp_path, prepared=prepared)
    output = json.loads((record.folder / "probe.json").read_text())
    assert len(output["depth"]["drift.cosine"]) == 2
    assert len(output["depth"]["lyapunov.largest"]) == 1
    assert len(output["depth"]["lyapunov.jacobian_norm"]) == 1
    assert output["layers"]["coupling.moved"][LAYER] <= output["layers"]["coupling.bound"][LAYER]
    assert record.result["notes"] == []


def test_a_run_of_patches_is_trained_judged_and_examined(run, tmp_path):
    few = {"train": 16, "validation": 8, "test": 8}
    prepare(replace(TASKS["pathfinder"], splits=few), out=tmp_path / "prepared")
    model = ModelConfig(
        dim=8, blocks=1, input="patch", patch=8, pooling="cls", positions=("after_embedding",)
    )
    patches = RunConfig(task="pathfinder", model=model, training=run.training)
    record = execute(patches, tmp_path / "results", prepared=tmp_path / "prepared")
    assert record.result["test"]["targets"] == 8
    assert record.result["notes"] == []
    output = json.loads((record.folder / "probe.json").read_text())
    assert len(output["bands"][LAYER]["before"]) == 4


def test_a_network_without_attention_is_trained_judged_and_examined(run, prepared, tmp_path):
    model = ModelConfig(dim=8, blocks=1, interaction="lstm", positions=("after_embedding",))
    record = execute(replace(run, model=model), tmp_path, prepared=prepared)
    assert record.result["notes"] == []
    output = json.loads((record.folder / "probe.json").read_text())
    assert len(output["depth"]["drift.cosine"]) == 2
    assert "attention.entropy" not in output["depth"]
    assert output["missing"]["attention"] == "nothing in its blocks attends"
    assert output["missing"]["lyapunov"] == "torch does not differentiate an LSTM twice"


def test_everything_is_computed_where_the_model_is(run, judged):
    model = ModelConfig(dim=8, blocks=1, positions=("after_embedding",))
    bare = replace(run, model=model).build()
    wanted = examine(bare, judged)
    with torch.device("meta"):  # whatever is made without a place lies elsewhere, and fails
        assert examine(bare, judged) == wanted
    # A model elsewhere: its batch follows it, so far as numbers without values can be followed.
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        examine(bare.to("meta"), judged)

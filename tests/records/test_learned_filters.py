import numpy as np
import pytest
import torch

from depthpde.layers.multiscale import MultiscaleDiffusion
from depthpde.layers.ratio import layer_bound
from depthpde.operators.stability import Scheme, multiplier
from depthpde.records.learned_filters import (
    BANDS,
    BOUND,
    OMEGA,
    learned_ratios,
    passed,
    start_and_bound,
    transfer,
)
from depthpde.records.record import Record


def record_of(tmp_path, model, ratios, weights=None):
    config = {"task": "t", "seed": 0, "model": model}
    result = {"status": "done", "ratios": ratios, "weights": weights or {}}
    return Record(tmp_path, "id", "label", config, {}, {}, result)


STEM = "encoder.placed.layers.after_embedding.layer"


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize(("steps", "dilation"), [(1, 1), (4, 1), (2, 3)])
def test_the_transfer_function_is_that_of_the_operators(scheme, steps, dilation):
    ratio = np.array([0.0, 0.1, 0.25])
    ours = transfer(scheme.value, ratio, OMEGA, steps=steps, dilation=dilation)
    theirs = multiplier(
        scheme, torch.tensor(ratio), torch.tensor(OMEGA), steps=steps, dilation=dilation
    )
    np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)


def test_default_bounds_are_those_of_the_layers():
    assert {scheme.value: layer_bound(scheme, None) for scheme in Scheme} == BOUND


def test_a_trained_multiscale_layer_passes_what_its_own_formula_says(tmp_path):
    torch.manual_seed(0)
    layer = MultiscaleDiffusion(4, scales="slow fast", dtype=torch.float64)
    with torch.no_grad():
        layer.logits.copy_(torch.tensor([0.3, -0.5]))
        for member in layer.members:
            member.free.theta.normal_()
    record = record_of(
        tmp_path,
        {"positions": ["after_embedding"], "layer": {"kind": "multiscale", "scales": "slow fast"}},
        {f"{STEM}.members.{k}.free": each.tolist() for k, each in enumerate(layer.ratio.detach())},
        {STEM: layer.weights.tolist()},
    )
    found = passed([record])["after embedding"]
    exact = layer.transfer_function(torch.tensor(OMEGA)).abs().detach().numpy()
    np.testing.assert_allclose(found.mean, exact.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.low, exact.min(axis=1), atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        {"positions": ["after_embedding"], "layer": "adaptive"},
        {"positions": ["after_embedding"], "layer": {"kind": "multiscale", "gated": True}},
        {"positions": ["after_embedding"], "layer": "diffusion", "geometry": "plane"},
        {"positions": ["after_ffn"], "layer": "diffusion"},
        {"positions": ["after_embedding"], "layer": {"kind": "diffusion", "steps": "many"}},
    ],
)
def test_what_has_no_transfer_function_along_the_sequence_is_left_out(tmp_path, model):
    assert passed([record_of(tmp_path, model, {f"{STEM}.free": [0.1, 0.2]})]) == {}


def test_energy_kept_falls_from_band_to_band_and_no_ratio_keeps_all(tmp_path):
    model = {"positions": ["after_embedding"], "layer": "diffusion"}
    kept = passed([record_of(tmp_path, model, {f"{STEM}.free": [0.25]})])["after embedding"].bands()
    assert len(kept) == len(BANDS)
    assert 1 > kept[0] > kept[1] > kept[2] > kept[3] > 0
    still = passed([record_of(tmp_path, model, {f"{STEM}.free": [0.0]})])["after embedding"]
    assert still.bands() == [1.0] * 4


def test_energy_is_the_mean_of_squares_not_the_square_of_the_mean(tmp_path):
    model = {"dim": 2, "positions": ["after_embedding"], "layer": {"kind": "diffusion"}}
    found = passed([record_of(tmp_path, model, {f"{STEM}.free": [0.0, 0.5]})])["after embedding"]
    halves = (1 + np.cos(OMEGA) ** 2) / 2  # one feature passes all, the other cos ω
    assert found.energy == pytest.approx(halves)
    assert found.bands()[1] > np.mean(found.mean[16:33] ** 2) + 0.05


def test_ratios_of_all_runs_stand_together_in_the_order_of_depth(evidence):
    found = learned_ratios(evidence.records("all seven"))
    assert [site.block for site in found] == [-1] + [0] * 6 + [1] * 6
    assert all(len(values) == 16 * 12 for values in found.values())
    assert learned_ratios(evidence.records("depthwise conv")) == {}


@pytest.mark.parametrize("ratios", [None, {"x": "y"}, {f"{STEM}.free": ["a"]}])
def test_ratios_that_cannot_be_read_are_left_out(tmp_path, ratios):
    assert learned_ratios([record_of(tmp_path, {}, ratios)]) == {}


def test_start_and_bound_follow_the_config():
    def printed(layer, **more):
        return start_and_bound({"model": {"positions": ["in_heads"], "layer": layer, **more}})

    assert printed("diffusion") == (0.125, 0.25)
    assert printed({"kind": "diffusion", "initial_ratio": 0.01}) == (0.01, 0.25)
    assert printed({"kind": "diffusion", "bound": 0.5}) == (0.25, 0.5)
    assert printed("diffusion", causal=True) == (0.25, 0.5)
    assert start_and_bound({}) == (None, None)

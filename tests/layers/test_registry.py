import pytest
import torch

from depthpde.layers.multiscale import DiffusionScale
from depthpde.layers.registry import KINDS, LayerConfig, LayerKind, build_layer, initial_ratio
from depthpde.operators.stability import Scheme


def start_of(layer):
    """Return the number at which a layer of any kind starts to mix."""
    if hasattr(layer, "memory"):
        return float(layer.memory[0].detach())
    if hasattr(layer, "start_ratio"):
        return layer.start_ratio
    return float(layer.ratio.flatten()[0].detach())


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", list(LayerKind))
def test_the_default_start_that_is_told_is_the_layers_own(kind, causal):
    layer = LayerConfig(kind=kind)
    built = build_layer(layer, 4, causal=causal)
    assert start_of(built) == pytest.approx(initial_ratio(layer, causal=causal))
    assert type(built) is KINDS[kind][0]


@pytest.mark.parametrize("kind", list(LayerKind))
def test_a_gain_scales_the_start_of_every_kind(kind):
    full, half = (build_layer(LayerConfig(kind=kind), 4, gain=gain) for gain in (1.0, 0.5))
    assert start_of(half) == pytest.approx(start_of(full) / 2)


def test_a_gain_scales_the_start_of_every_scale():
    scales = (DiffusionScale(steps=1, initial_ratio=0.2), DiffusionScale(steps=4))
    layer = build_layer(LayerConfig(kind="multiscale", scales=scales), 4, gain=0.5)
    assert layer.ratio[:, 0].tolist() == pytest.approx([0.1, 1 / 16])


@pytest.mark.parametrize("kind", list(LayerKind))
def test_every_kind_has_a_causal_form(kind):
    layer = build_layer(LayerConfig(kind=kind), 4, causal=True)
    assert layer.is_causal
    u = torch.randn(1, 6, 4)
    changed = u.clone()
    changed[:, 4:] += 1
    assert torch.equal(layer(u)[:, :4], layer(changed)[:, :4])


@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_scheme_can_be_chosen(scheme):
    layer = build_layer(LayerConfig(scheme=scheme), 4)
    assert layer.problem.scheme is scheme
    assert start_of(layer) == pytest.approx(initial_ratio(LayerConfig(scheme=scheme), causal=False))


def test_a_plane_halves_the_start():
    layer = build_layer(LayerConfig(), 4, grid=(3, 3), gain=0.5)
    assert start_of(layer) == pytest.approx(1 / 32)


def test_every_setting_reaches_its_layer():
    layer = build_layer(
        LayerConfig(steps=3, dilation=2, bound=0.5, per="scalar", boundary="periodic"), 4
    )
    problem = layer.problem
    assert (problem.steps, problem.dilation, problem.boundary) == (3, 2, "periodic")
    assert (layer.free.bound, layer.free.theta.numel()) == (0.5, 1)
    conv = build_layer(LayerConfig(kind="depthwise_conv", width=5, start="blur"), 4)
    assert (conv.width, conv.start) == (5, "blur")
    mixed = build_layer(LayerConfig(kind="multiscale", scales="fast slow", gated=True), 4)
    assert (len(mixed.scales), mixed.gate is not None) == (2, True)

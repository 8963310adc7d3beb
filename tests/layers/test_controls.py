"""The controls: same signature, same walls, and each equal to its plain definition."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from depthpde import Diffusion, diffuse
from depthpde.layers.controls import Blur, DepthwiseConv, ExponentialAverage, TokenShift
from depthpde.layers.transfer import measure_transfer

DTYPE = torch.float64
CONTROLS = {
    "conv": lambda causal: DepthwiseConv(4, start="blur", causal=causal, dtype=DTYPE),
    "wide conv": lambda causal: DepthwiseConv(4, width=5, start="blur", causal=causal, dtype=DTYPE),
    "blur": lambda causal: Blur(4, causal=causal).double(),
    "average": lambda causal: ExponentialAverage(4, causal=causal, dtype=DTYPE),
}


def field(length=13):
    generator = torch.Generator().manual_seed(length)
    return torch.randn(3, length, 4, generator=generator, dtype=DTYPE)


VALID = torch.arange(13)[None] < torch.tensor([[13], [8], [1]])


def test_convolution_equals_torch_inside_the_sequence():
    layer, u = DepthwiseConv(4, width=5, dtype=DTYPE), field()
    with torch.no_grad():
        layer.weight.copy_(torch.randn(5, 4, dtype=DTYPE))
    plain = F.conv1d(u.mT, layer.weight.mT[:, None], groups=4).mT
    torch.testing.assert_close(layer(u)[:, 2:-2], plain)


def test_convolution_started_at_the_blur_is_diffusion_and_at_the_identity_nothing():
    u = field()
    blur = DepthwiseConv(4, start="blur", start_ratio=0.2, dtype=DTYPE)
    torch.testing.assert_close(blur(u, VALID), diffuse(u, 0.2, valid_mask=VALID))
    causal = DepthwiseConv(4, start="blur", start_ratio=0.2, causal=True, dtype=DTYPE)
    upwind = diffuse(u, 0.2, scheme="upwind", valid_mask=VALID)
    torch.testing.assert_close(causal(u, VALID), upwind)
    assert torch.equal(DepthwiseConv(4, dtype=DTYPE)(u, VALID), u)


def test_blur_is_the_layer_before_it_learns():
    u = field()
    assert not list(Blur(4).parameters())
    torch.testing.assert_close(Blur(4).double()(u, VALID), Diffusion(4, dtype=DTYPE)(u, VALID))
    causal = Diffusion(4, causal=True, dtype=DTYPE)
    torch.testing.assert_close(Blur(4, causal=True).double()(u, VALID), causal(u, VALID))


def test_exponential_average_equals_its_recursion():
    layer, u = ExponentialAverage(4, causal=True, dtype=DTYPE), field()
    memory = layer.memory.detach()
    for b, n in enumerate((13, 8, 1)):
        total, count = torch.zeros(4, dtype=DTYPE), torch.zeros(4, dtype=DTYPE)
        for i in range(n):
            total, count = memory * total + u[b, i], memory * count + 1
            torch.testing.assert_close(layer(u, VALID)[b, i], total / count)
    both = ExponentialAverage(4, dtype=DTYPE)
    torch.testing.assert_close(both(u), (layer(u) + layer(u.flip(1)).flip(1)) / 2)


def test_token_shift_is_one_upwind_step():
    layer, u = TokenShift(4, dtype=DTYPE), field()
    wanted = diffuse(u, layer.ratio.detach(), scheme="upwind", valid_mask=VALID)
    torch.testing.assert_close(layer(u, VALID), wanted)
    assert layer.is_causal


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", CONTROLS)
def test_padding_does_not_leak_and_segments_do_not_mix(name, causal):
    layer, u = CONTROLS[name](causal), field()
    out = layer(u, VALID)
    assert torch.equal(out[VALID], layer(torch.where(VALID[..., None], u, 99.0), VALID)[VALID])
    torch.testing.assert_close(out[1:2, :8], layer(u[1:2, :8]), rtol=0, atol=1e-13)
    segments = torch.tensor([[0] * 5 + [1] * 8]).expand(3, -1)
    apart = torch.cat((layer(u[:, :5]), layer(u[:, 5:])), dim=1)
    torch.testing.assert_close(layer(u, segments=segments), apart, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_causal_control_never_shows_a_site_its_future(name):
    layer, u = CONTROLS[name](True), field()
    changed = u.clone()
    changed[:, 6:] += 1
    assert layer.is_causal
    assert torch.equal(layer(changed)[:, :6], layer(u)[:, :6])
    assert not torch.equal(CONTROLS[name](False)(changed)[:, :6], CONTROLS[name](False)(u)[:, :6])


@pytest.mark.parametrize("name", ["conv", "wide conv", "blur"])
@pytest.mark.parametrize("causal", [False, True])
def test_transfer_function_by_formula_equals_the_measured_one(name, causal):
    layer = CONTROLS[name](causal)
    omega = torch.linspace(0, math.pi, 7, dtype=DTYPE)
    measured = measure_transfer(layer, omega)
    torch.testing.assert_close(layer.transfer_function(omega), measured, rtol=0, atol=1e-12)


def test_each_says_how_many_parameters_it_learns():
    for build in CONTROLS.values():
        layer = build(False)
        count = sum(p.numel() for p in layer.parameters())
        assert f"{count} parameters" in repr(layer)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"`width`.*got 4; use 3 or 5"):
        DepthwiseConv(4, width=4)
    with pytest.raises(ValueError, match=r"`start`.*identity, blur"):
        DepthwiseConv(4, start="zero")
    with pytest.raises(ValueError, match=r"`ratio` must lie in \[0, 0.5\].*explicit scheme"):
        Blur(4, ratio=0.7)
    with pytest.raises(ValueError, match="`initial_memory` must lie in"):
        ExponentialAverage(4, initial_memory=1.5)
    for build in CONTROLS.values():
        with pytest.raises(ValueError, match="`u` must have 4 features"):
            build(False)(torch.zeros(1, 3, 5, dtype=DTYPE))


@pytest.mark.parametrize("name", CONTROLS)
def test_a_batch_of_nothing_stays_one(name):
    u = torch.zeros(0, 13, 4, dtype=DTYPE)
    assert CONTROLS[name](False)(u).shape == u.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_an_average_over_a_long_past_is_summed_in_full_precision(dtype, causal):
    layer = ExponentialAverage(1, initial_memory=0.99, causal=causal)
    constant = torch.full((1, 512, 1), 1000.0, dtype=dtype)
    assert torch.equal(layer(constant), constant)


def test_a_blur_laid_out_before_it_has_memory_is_filled_by_its_reset():
    with torch.device("meta"):
        layer = Blur(4, ratio=0.2)
    layer = layer.to_empty(device="cpu")
    layer.reset_parameters()
    assert float(layer.ratio) == pytest.approx(0.2)

"""What the layers guarantee, for any parameter."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde import (
    AdaptiveDiffusion,
    Diffusion,
    DiffusionScale,
    MultiscaleDiffusion,
    Scheme,
    diffuse,
)
from depthpde.layers.transfer import measure_transfer

DTYPE = torch.float64
LAYERS = {
    "diffusion": lambda **k: Diffusion(6, dtype=DTYPE, **k),
    "four steps": lambda **k: Diffusion(6, steps=4, dtype=DTYPE, **k),
    "heads": lambda **k: Diffusion(6, per="head", num_heads=2, dtype=DTYPE, **k),
    "adaptive": lambda **k: AdaptiveDiffusion(6, dtype=DTYPE, **k),
    "multiscale": lambda **k: MultiscaleDiffusion(6, dtype=DTYPE, **k),
    "gated": lambda **k: MultiscaleDiffusion(6, gated=True, dtype=DTYPE, **k),
}
SYMMETRIC = {
    **LAYERS,
    "implicit": lambda **k: Diffusion(6, scheme="backward_euler", dtype=DTYPE, **k),
    "crank-nicolson": lambda **k: Diffusion(6, scheme="crank_nicolson", dtype=DTYPE, **k),
    "exact": lambda **k: Diffusion(6, scheme="exact", dtype=DTYPE, **k),
    "plane": lambda **k: Diffusion(6, grid=(3, 4), dtype=DTYPE, **k),
}


def field(length=12, scale=1.0):
    generator = torch.Generator().manual_seed(length)
    return scale * torch.randn(3, length, 6, generator=generator, dtype=DTYPE)


def shake(layer, size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=DTYPE)
            parameter.add_(size * noise)
    return layer


def energy(u):
    return (u[:, 1:] - u[:, :-1]).square().sum(dim=1)


@settings(max_examples=15)
@given(st.sampled_from(sorted(SYMMETRIC)), st.floats(0, 30), st.integers(0, 99))
def test_no_parameter_raises_the_range_or_moves_the_mean(name, size, seed):
    layer, u = shake(SYMMETRIC[name](), size, seed), field()
    out = layer(u)
    assert (out.amax(1) <= u.amax(1) + 1e-9).all()
    assert (out.amin(1) >= u.amin(1) - 1e-9).all()
    if name != "gated":
        torch.testing.assert_close(out.mean(1), u.mean(1), rtol=0, atol=1e-10)


def test_crank_nicolson_leaves_the_range_at_a_ratio_beyond_1():
    layer = Diffusion(1, scheme="crank_nicolson", bound=10.0, initial_ratio=9.0, dtype=DTYPE)
    spike = torch.zeros(1, 9, 1, dtype=DTYPE)
    spike[0, 4] = 1.0
    assert layer(spike).min() < -0.1


@pytest.mark.parametrize("name", [n for n in SYMMETRIC if n not in ("adaptive", "gated", "plane")])
def test_no_parameter_raises_the_energy_or_the_norm(name):
    for seed in range(5):
        layer, u = shake(SYMMETRIC[name](), 5, seed), field()
        out = layer(u)
        assert (energy(out) <= energy(u) * (1 + 1e-12)).all()
        assert (out.norm(dim=1) <= u.norm(dim=1) * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", SYMMETRIC)
def test_zero_ratio_is_the_identity_to_the_bit_and_learns(name):
    layer, u = SYMMETRIC[name](initial_ratio=0.0), field()
    if name in ("implicit", "crank-nicolson", "exact"):
        torch.testing.assert_close(layer(u), u, rtol=0, atol=1e-14)
    else:
        assert torch.equal(layer(u), u)
    before = energy(layer(u)).sum()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        energy(layer(u)).sum().backward()
        optimizer.step()
    assert energy(layer(u)).sum() < before - 1e-3


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("causal", [False, True])
def test_padding_does_not_leak(name, causal):
    layer, u = shake(LAYERS[name](causal=causal), 1), field()
    valid = torch.arange(12)[None] < torch.tensor([[12], [7], [1]])
    out = layer(u, valid)
    other = layer(torch.where(valid[..., None], u, 99.0), valid)
    assert torch.equal(out[valid], other[valid])
    torch.testing.assert_close(out[1:2, :7], layer(u[1:2, :7]), rtol=0, atol=1e-13)
    assert torch.equal(out[~valid], u[~valid])
    torch.testing.assert_close(out[~valid], u[~valid], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", LAYERS)
def test_a_causal_layer_never_shows_a_site_its_future(name):
    layer, u = shake(LAYERS[name](causal=True), 1), field()
    assert layer.is_causal
    out = layer(u)
    changed = u.clone()
    changed[:, 7:] += 5
    assert torch.equal(layer(changed)[:, :7], out[:, :7])
    assert not torch.equal(layer(changed)[:, 7:], out[:, 7:])
    assert (out.amax(1) <= u.amax(1) + 1e-12).all()
    symmetric = LAYERS[name](causal=False)
    assert not symmetric.is_causal
    assert not torch.equal(symmetric(changed)[:, :7], symmetric(u)[:, :7])


@pytest.mark.parametrize("name", LAYERS)
def test_one_call_looks_no_farther_than_its_reach(name):
    layer = LAYERS[name]()
    u = field(60)
    changed = u.clone()
    changed[:, 0] += 1
    same = (layer(changed) == layer(u)).all(dim=0).all(dim=1)
    farthest = int((~same).nonzero().max())
    assert farthest <= layer.reach
    assert farthest >= layer.reach - (name in ("multiscale", "gated")) * 8


@pytest.mark.parametrize("name", LAYERS)
def test_packed_segments_equal_sequences_apart(name):
    layer, u = shake(LAYERS[name](), 1), field()
    segments = torch.tensor([[0] * 5 + [1] * 7]).expand(3, -1)
    apart = torch.cat((layer(u[:, :5]), layer(u[:, 5:])), dim=1)
    torch.testing.assert_close(layer(u, segments=segments), apart, rtol=0, atol=1e-13)


LINEAR = {
    **{scheme.value: (lambda s=scheme: Diffusion(6, scheme=s, dtype=DTYPE)) for scheme in Scheme},
    "steps": lambda: Diffusion(6, steps=3, dilation=2, dtype=DTYPE),
    "multiscale": lambda: MultiscaleDiffusion(6, dtype=DTYPE),
    "causal multiscale": lambda: MultiscaleDiffusion(6, causal=True, dtype=DTYPE),
}


@pytest.mark.parametrize("name", LINEAR)
def test_transfer_function_by_formula_equals_the_measured_one(name):
    layer = shake(LINEAR[name](), 0.5)
    omega = torch.linspace(0, math.pi, 9, dtype=DTYPE)
    formula = layer.transfer_function(omega)
    assert formula.shape == (9, 6)
    torch.testing.assert_close(measure_transfer(layer, omega), formula, rtol=0, atol=1e-10)


def test_adaptive_diffusion_keeps_a_cliff_that_plain_diffusion_melts():
    u = torch.zeros(1, 20, 1, dtype=DTYPE)
    u[:, 10:] = 10.0
    plain, adaptive = Diffusion(1, dtype=DTYPE), AdaptiveDiffusion(1, dtype=DTYPE)
    assert (plain(u) - u).abs().max() > 1
    assert (adaptive(u) - u).abs().max() < 1e-9
    ripple = 0.1 * torch.randn(1, 20, 1, dtype=DTYPE)
    assert energy(adaptive(ripple)) < 0.8 * energy(ripple)


def test_adaptive_step_matrix_is_symmetric_and_doubly_stochastic():
    layer, u = shake(AdaptiveDiffusion(6, dtype=DTYPE, bound=0.5), 1), field()[:1]
    ratio = layer.edge_ratio(u).detach()
    assert (ratio >= 0).all()
    assert (ratio <= 0.5).all()
    eye = torch.eye(12, dtype=DTYPE)[None]
    matrix = diffuse(eye, ratio)[0]
    torch.testing.assert_close(matrix, matrix.mT)
    torch.testing.assert_close(matrix.sum(0), torch.ones(12, dtype=DTYPE))
    assert (matrix >= -1e-15).all()


def test_weights_of_the_scales_are_convex():
    layer = shake(MultiscaleDiffusion(6), 10)
    assert (layer.weights >= 0).all()
    assert layer.weights.sum().item() == pytest.approx(1, abs=1e-6)
    assert layer.ratio.shape == (3, 6)


def test_scales_that_collapse_into_one_are_refused_and_the_collapse_is_real():
    for scales in (
        [DiffusionScale(), DiffusionScale()],
        [DiffusionScale(initial_ratio=0.1), DiffusionScale(initial_ratio=0.2)],
    ):
        with pytest.raises(
            ValueError, match=r"two with steps=1, dilation=1: .* Σ w_k \(I \+ r_k L"
        ):
            MultiscaleDiffusion(6, scales=scales)
    u = field()
    mixed = 0.3 * diffuse(u, 0.1) + 0.7 * diffuse(u, 0.2)
    torch.testing.assert_close(mixed, diffuse(u, 0.3 * 0.1 + 0.7 * 0.2))
    real = 0.3 * diffuse(u, 0.1) + 0.7 * diffuse(u, 0.2, steps=4)
    best = min(float((real - diffuse(u, r)).abs().max()) for r in torch.linspace(0, 0.5, 200))
    assert best > 0.05


def test_refuses_unknown_scales():
    with pytest.raises(ValueError, match=r"`scales` must be one of slow, .* did you mean 'fast'"):
        MultiscaleDiffusion(6, scales="fst slow")
    with pytest.raises(ValueError, match=r"`scales`.*one scale"):
        MultiscaleDiffusion(6, scales="")


@pytest.mark.parametrize("kind", [Diffusion, MultiscaleDiffusion])
def test_refuses_a_symmetric_stencil_in_a_causal_layer(kind):
    with pytest.raises(ValueError, match=r"`scheme`.*'upwind'.*got 'expl"):
        kind(6, causal=True, scheme="explicit")


def test_refuses_a_field_of_another_width_and_a_mask_of_another_kind():
    for name, build in LAYERS.items():
        with pytest.raises(ValueError, match=r"`u`.*6.*got 5"):
            build()(torch.zeros(1, 4, 5, dtype=DTYPE))
        with pytest.raises(ValueError, match=r"`valid_mask` must be boolean"):
            build()(torch.zeros(1, 4, 6, dtype=DTYPE), torch.ones(1, 4))
        assert name


def test_refuses_what_has_no_meaning_over_a_grid():
    with pytest.raises(
        ValueError, match=r"must be 'explicit' or 'exact' over a grid, got 'upwind'"
    ):
        Diffusion(6, grid=(2, 2), causal=True)
    layer = Diffusion(6, grid=(3, 4), dtype=DTYPE)
    with pytest.raises(ValueError, match=r"`segments` must be left out over a grid"):
        layer(field(), segments=torch.zeros(field().shape[:2], dtype=torch.long))
    with pytest.raises(ValueError, match=r"`grid` must have as many sites as the field"):
        layer(field(), row_length=5)
    with pytest.raises(ValueError, match=r"`transfer_function`.*has two"):
        layer.transfer_function(torch.zeros(1))
    with pytest.raises(ValueError, match=r"a gated one has none"):
        MultiscaleDiffusion(6, gated=True).transfer_function(torch.zeros(1))


@pytest.mark.parametrize("name", SYMMETRIC)
def test_saves_loads_copies_and_describes_itself(name):
    layer, u = shake(SYMMETRIC[name](), 1), field()
    other = SYMMETRIC[name]()
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(u), layer(u))
    assert torch.equal(copy.deepcopy(layer)(u), layer(u))
    assert "6" in repr(layer)


@pytest.mark.parametrize(
    "name",
    [
        "diffusion",
        *(pytest.param(n, marks=pytest.mark.drill) for n in ("adaptive", "multiscale", "gated")),
    ],
)
def test_compiles_as_one_graph_and_trains_in_half_precision(name):
    layer, u = LAYERS[name]().float(), field().float()
    compiled = torch.compile(layer, fullgraph=True)
    torch.testing.assert_close(compiled(u), layer(u))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(u.bfloat16())
    out.float().square().sum().backward()
    assert out.dtype is torch.bfloat16
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in layer.parameters())


@pytest.mark.parametrize("name", SYMMETRIC)
def test_a_batch_of_nothing_stays_one(name):
    u = torch.zeros(0, 12, 6, dtype=DTYPE, requires_grad=True)
    out = SYMMETRIC[name]()(u)
    out.sum().backward()
    assert out.shape == u.shape == u.grad.shape


@pytest.mark.parametrize("name", sorted(SYMMETRIC))
def test_padding_that_is_no_number_reaches_neither_sites_nor_gradients(name):
    layer, u = shake(SYMMETRIC[name](), 0.5), field()
    valid = torch.arange(12) < torch.tensor([[12], [7], [1]])
    results = []
    for beyond in (0.0, torch.nan):
        layer.zero_grad()
        padded = torch.where(valid[..., None], u, beyond).requires_grad_()
        out = layer(padded, valid_mask=valid)
        out[valid].square().sum().backward()
        grads = [each.grad.clone() for each in layer.parameters()]
        results.append([out[valid].detach(), padded.grad[valid], *grads])
    for clean, got in zip(*results, strict=True):
        torch.testing.assert_close(got, clean, rtol=1e-12, atol=1e-12)


def test_refuses_a_dilation_over_a_grid_and_ends_that_upwind_does_not_have():
    with pytest.raises(ValueError, match=r"`dilation`.*1.*got 2; use more steps"):
        Diffusion(6, grid=(3, 4), dilation=2)
    with pytest.raises(ValueError, match=r"`dilation`.*1.*got 2"):
        MultiscaleDiffusion(6, grid=(3, 4), scales=[DiffusionScale(), DiffusionScale(dilation=2)])
    with pytest.raises(ValueError, match=r"`boundary` must be 'no_flux'.*causal upwind"):
        Diffusion(6, causal=True, boundary="periodic")


def test_scales_are_named_in_a_text_or_in_a_list():
    layers = [MultiscaleDiffusion(6, scales=each) for each in ("fast slow", ["fast", "slow"])]
    assert layers[0].scales == layers[1].scales


def test_a_layer_can_be_laid_out_before_it_has_memory():
    with torch.device("meta"):
        layers = [Diffusion(6), AdaptiveDiffusion(6), MultiscaleDiffusion(6, gated=True)]
    for layer in layers:
        assert {each.device.type for each in layer.parameters()} == {"meta"}


def test_a_ratio_is_held_only_where_it_is_a_parameter():
    """A tensor that stands in for it during one call, as in `functional_call`, is no parameter."""
    layer, u = Diffusion(4, causal=True), torch.randn(1, 1, 4)
    with torch.no_grad():
        assert layer.hold_ratio(u) is not None
        theta = layer.free._parameters.pop("theta")
        layer.free._parameters["theta"] = theta.detach().double()
        assert layer.hold_ratio(u) is None
    layer.free._parameters["theta"] = theta
    assert layer.hold_ratio(u) is None, "a gradient may be wanted"

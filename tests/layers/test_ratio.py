from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from depthpde.layers.diffusion import Diffusion
from depthpde.layers.ratio import BoundedRatio, HeldRatio, Per, layer_bound
from depthpde.operators.stability import Scheme


@given(st.floats(-1e4, 1e4), st.sampled_from([0.0, 0.1, 0.2]))
def test_the_ratio_stays_in_its_bound_for_any_parameter(theta, start):
    ratio = BoundedRatio(4, 0.25, start)
    with torch.no_grad():
        ratio.theta.fill_(theta)
    assert (ratio() >= 0).all()
    assert (ratio() <= 0.25).all()


def test_one_ratio_per_feature_head_or_all():
    assert BoundedRatio(6, 0.25, 0.1).theta.shape == (6,)
    assert BoundedRatio(6, 0.25, 0.1, per="scalar")().shape == (1,)
    heads = BoundedRatio(6, 0.25, 0.1, per=Per.HEAD, num_heads=2)
    with torch.no_grad():
        heads.theta.copy_(torch.tensor([-50.0, 50.0]))
    torch.testing.assert_close(heads(), torch.tensor([0.0] * 3 + [0.25] * 3))


def test_starts_where_it_is_told():
    for start in (0.0, 0.01, 0.2):
        torch.testing.assert_close(BoundedRatio(3, 0.25, start)(), torch.full((3,), start))


def test_zero_learns_from_the_first_update_and_can_come_back():
    ratio = BoundedRatio(1, 0.25, 0.0)
    optimizer = torch.optim.SGD(ratio.parameters(), lr=0.1)
    assert ratio().item() == 0
    for target, reached in ((0.2, 0.2), (-3.0, 0.0), (0.1, 0.1)):
        for _ in range(200):
            optimizer.zero_grad()
            (ratio() - target).square().sum().backward()
            optimizer.step()
            if target < 0 and ratio().item() == 0:
                break
        assert ratio().item() == pytest.approx(reached, abs=1e-3)


def test_default_bounds_keep_every_sign():
    assert layer_bound(Scheme.EXPLICIT, None) == 1 / 4
    assert layer_bound(Scheme.EXPLICIT, None, 2) == 1 / 8
    assert layer_bound(Scheme.UPWIND, None) == 1 / 2
    assert layer_bound(Scheme.EXACT, None) == 1.0
    assert layer_bound(Scheme.EXPLICIT, 0.5) == 0.5


def test_builds_on_the_meta_device():
    assert BoundedRatio(3, 0.25, 0.1, device="meta").theta.is_meta


def test_refuses_what_is_out_of_bounds():
    with pytest.raises(ValueError, match=r"`bound` must lie in .* got 0.6; explicit is unstable"):
        layer_bound(Scheme.EXPLICIT, 0.6)
    with pytest.raises(ValueError, match=r"`initial_ratio`.*\[0, 0.25\].*got 0.3"):
        BoundedRatio(3, 0.25, 0.3)
    with pytest.raises(ValueError, match=r"`num_heads`.*6.*got 4"):
        BoundedRatio(6, 0.25, 0.1, per="head", num_heads=4)
    with pytest.raises(ValueError, match=r"`per`.*head, scalar"):
        BoundedRatio(6, 0.25, 0.1, per="token")


def held(dtype=torch.float32):
    layer = Diffusion(4, causal=True, initial_ratio=0.25)
    with torch.no_grad():
        return layer, HeldRatio(layer, torch.zeros(1, 1, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_held_ratio_is_the_layer_s_and_keeps_sites_in_the_precision_of_the_step(dtype):
    layer, ratio = held(dtype)
    assert ratio.serves(layer)
    assert torch.equal(ratio.ratio, layer.ratio.detach())
    u = torch.ones(1, 1, 4, dtype=dtype)
    kept = ratio.kept(u)
    assert kept.dtype is torch.float32
    assert kept.data_ptr() != u.data_ptr()
    assert copy.deepcopy(ratio) is ratio


def changed_in_place(layer):
    with torch.no_grad():
        layer.free.theta.add_(1.0)


def another_parameter(layer):
    layer.free.theta = torch.nn.Parameter(torch.zeros(4))


def another_ratio(layer):
    layer.free = copy.deepcopy(layer.free)


def hooked(layer):
    layer.register_forward_hook(lambda module, args, out: out)


def hooked_ratio(layer):
    layer.free.register_forward_pre_hook(lambda module, args: None)


@pytest.mark.parametrize(
    "change", [changed_in_place, another_parameter, another_ratio, hooked, hooked_ratio]
)
def test_a_held_ratio_serves_no_longer_than_the_layer_is_what_it_was(change):
    layer, ratio = held()
    change(layer)
    assert not ratio.serves(layer)


def test_a_held_ratio_steps_aside_for_hooks_of_every_module():
    layer, ratio = held()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: out)
    assert not ratio.serves(layer)
    handle.remove()
    assert ratio.serves(layer)
    assert not ratio.serves(copy.deepcopy(layer))

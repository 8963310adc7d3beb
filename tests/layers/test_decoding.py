"""One memory for incremental decoding: windows of a layer's reach, equal to the whole sequence."""

import pytest
import torch

from depthpde.layers.controls import DepthwiseConv, ExponentialAverage
from depthpde.layers.decoding import UNCOUNTED, DecodeCache, Sites, decode, next_site
from depthpde.layers.diffusion import Diffusion


def upwind(dim=4):
    return Diffusion(dim, scheme="upwind", steps=2, initial_ratio=0.3).double()


def draw(length, dim=4):
    return torch.randn(2, length, dim, generator=torch.Generator().manual_seed(0)).double()


def piecewise(layer, u, cuts, segments=None):
    windows, outs, seen = {}, [], 0
    for part in u.split(cuts, dim=1):
        end = seen + part.shape[1]
        own = None if segments is None else segments[:, seen:end]
        outs.append(decode(layer, Sites(part, None, own), windows=windows, seen=seen, name="a"))
        seen = end
    return torch.cat(outs, dim=1), windows["a"]


@pytest.mark.parametrize("cuts", [[1] * 9, [4, 1, 4], [9]])
def test_pieces_equal_the_whole_and_only_the_reach_is_kept(cuts):
    layer, u = upwind(), draw(9)
    out, window = piecewise(layer, u, cuts)
    torch.testing.assert_close(out, layer(u), rtol=0, atol=1e-14)
    assert window.seen == 9
    assert window.sites.field.shape[1] == min(layer.reach, 9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"initial_ratio": 0.0}, {"per": "head", "num_heads": 2}])
def test_one_site_at_a_time_equals_the_whole_in_every_precision(dtype, options):
    layer = Diffusion(4, causal=True, **options)
    with torch.no_grad():
        layer.free.theta.add_(0.1 * torch.arange(layer.free.theta.numel()))
    layer, u = layer.double() if dtype is torch.float64 else layer, draw(6).to(dtype)
    out, _ = piecewise(layer, u, [2, 1, 1, 1, 1])
    gap = torch.finfo(dtype).eps
    torch.testing.assert_close(out, layer(u), rtol=gap, atol=gap)


def test_gradients_reach_past_and_present_sites_and_the_ratio():
    layer, u = Diffusion(4, causal=True).double(), draw(2).requires_grad_()
    apart = layer(u[:, 1:], before=u[:, :1])
    wanted = (u, *layer.parameters())
    whole = torch.autograd.grad(layer(u)[:, 1:].square().sum(), wanted)
    torch.testing.assert_close(torch.autograd.grad(apart.square().sum(), wanted), whole)


def test_a_hooked_ratio_is_called_at_single_sites_too():
    layer, u = Diffusion(4, causal=True).double(), draw(2)
    layer.free.register_forward_hook(lambda module, args, ratio: 0 * ratio)
    assert torch.equal(layer(u[:, 1:], before=u[:, :1]), u[:, 1:])


def test_what_a_model_writes_into_its_own_memory_is_not_remembered():
    layer, u, windows = Diffusion(4, causal=True).double(), draw(4), {}
    for k, part in enumerate((u[:, :2].clone(), u[:, 2:3].clone(), u[:, 3:].clone())):
        out = decode(layer, Sites(part), windows=windows, seen=(0, 2, 3)[k], name="a")
        part.add_(100.0)
    torch.testing.assert_close(out, layer(u)[:, 3:], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "length", "before"),
    [({"causal": False}, 1, 1), ({"steps": 2}, 1, 1), ({}, 2, 2), ({}, 1, 2)],
)
def test_refuses_a_site_in_front_where_one_does_not_decide(options, length, before):
    layer = Diffusion(4, **{"causal": True, **options}).double()
    with pytest.raises(ValueError, match=r"`before`.*at once"):
        layer(draw(length), before=draw(before))


def test_a_layer_without_an_end_keeps_everything():
    layer, u = ExponentialAverage(4, initial_memory=0.5, causal=True).double(), draw(6)
    out, window = piecewise(layer, u, [3, 1, 1, 1])
    torch.testing.assert_close(out, layer(u), rtol=0, atol=1e-12)
    assert window.sites.field.shape[1] == 6


def test_segments_of_new_sites_are_walls_and_missing_ones_continue_the_last():
    layer, u = upwind(), draw(8)
    segments = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]).expand(2, -1)
    out, _ = piecewise(layer, u, [2] * 4, segments)
    torch.testing.assert_close(out, layer(u, None, segments), rtol=0, atol=1e-14)
    first = Sites(u[:, :4], None, segments[:, :4])
    assert first.then(Sites(u[:, 4:])).segments[0].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_masks_are_joined_where_either_side_has_one():
    half = Sites(draw(2), torch.tensor([[False, True]] * 2))
    assert half.then(Sites(draw(1))).valid.tolist() == [[False, True, True]] * 2
    assert Sites(draw(2)).then(half).valid[0].tolist() == [True, True, False, True]
    assert Sites(draw(2)).then(Sites(draw(1))).valid is None


@pytest.mark.parametrize(
    ("seen", "words"), [(3, "3 tokens.*'b'.*empty cache"), (UNCOUNTED, "some tokens.*'b'")]
)
def test_a_sequence_that_a_layer_never_read_is_refused(seen, words):
    with pytest.raises(ValueError, match=words):
        decode(upwind(), Sites(draw(1)), windows={}, seen=seen, name="b")


def test_a_sequence_that_was_cut_back_is_refused():
    windows = {}
    decode(upwind(), Sites(draw(4)), windows=windows, seen=0, name="b")
    with pytest.raises(ValueError, match=r"2 tokens.*read 4.*assistant"):
        decode(upwind(), Sites(draw(1)), windows=windows, seen=2, name="b")


def test_keys_and_values_are_kept_whole():
    cache, u = DecodeCache(), draw(5)
    assert torch.equal(cache.join("key", u[:, :3]), u[:, :3])
    assert torch.equal(cache.join("key", u[:, 3:]), u)
    assert torch.equal(cache.join("value", u.mT, axis=2), u.mT)


def test_a_free_convolution_needs_its_own_reach():
    layer = DepthwiseConv(4, width=5, causal=True).double()
    out, window = piecewise(layer, draw(7), [3, 1, 3])
    torch.testing.assert_close(out, layer(draw(7)), rtol=0, atol=1e-14)
    assert window.sites.field.shape[1] == layer.reach


def one_by_one(layer, u, between=lambda k: None):
    windows, outs = {}, []
    with torch.no_grad():
        for k in range(u.shape[1]):
            between(k)
            outs.append(decode(layer, Sites(u[:, k : k + 1]), windows=windows, seen=k, name="a"))
    return torch.cat(outs, dim=1), windows["a"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_ratio_is_worked_out_once_a_sequence_where_no_gradient_is_taken(dtype):
    layer, u = Diffusion(4, causal=True, initial_ratio=0.3), draw(8).to(dtype)
    layer = layer.double() if dtype is torch.float64 else layer
    out, window = one_by_one(layer, u)
    assert window.held is not None
    gap = torch.finfo(dtype).eps
    torch.testing.assert_close(out, layer(u).detach(), rtol=gap, atol=gap)
    assert out.dtype is dtype
    layer.__class__ = type("Other", (Diffusion,), {})  # whose forward may do something else
    again, window = one_by_one(layer, u)
    assert window.held is None
    torch.testing.assert_close(again, out, rtol=gap, atol=gap)


def test_a_ratio_that_changes_within_a_sequence_holds_from_then_on():
    layer, u = Diffusion(4, causal=True, initial_ratio=0.3).double(), draw(8)

    def between(k):
        if k == 5:
            layer.free.theta.add_(1.0)

    before = layer(u).detach()
    out, _ = one_by_one(layer, u, between)
    torch.testing.assert_close(out[:, :5], before[:, :5], rtol=0, atol=1e-14)
    torch.testing.assert_close(out[:, 5:], layer(u).detach()[:, 5:], rtol=0, atol=1e-14)


def test_a_hook_on_the_layer_sees_every_site_from_its_registration_on():
    layer, u, seen = Diffusion(4, causal=True, initial_ratio=0.3).double(), draw(8), []

    def between(k):
        if k == 5:
            layer.register_forward_hook(lambda module, args, out: seen.append(out))

    out, _ = one_by_one(layer, u, between)
    assert torch.equal(torch.cat(seen, dim=1), out[:, 5:])


def test_other_rows_or_another_precision_leave_the_short_way():
    layer, u = Diffusion(4, causal=True, initial_ratio=0.3), draw(5).float()
    _, window = one_by_one(layer, u)
    with torch.no_grad():
        assert next_site(layer, u[:1, :1], window, 5) is None
        assert next_site(layer, u[:, :1].bfloat16(), window, 5) is None
        assert next_site(layer, u[:, :1], window, 4) is None
        assert next_site(layer, u[:, :1], None, 5) is None
        assert next_site(layer, u[:, :1], window, UNCOUNTED) is not None
    assert next_site(layer, u[:, :1], window, 6) is None, "a gradient may be taken"
    assert window.seen == 6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("padded", "counts", "held"),
    [
        (False, (1, 1, 1, 1, 2, 1, 1), [False, True, True, True, False, True, True]),
        # a window that holds a mask hands it on: the short way does not come back
        (True, (1, 1, 1, 1, 1, 1, 1), [False, True, True, True, False, False, False]),
    ],
)
def test_several_sites_or_a_wall_in_between_end_the_short_way(dtype, padded, counts, held):
    layer, u = Diffusion(4, causal=True, initial_ratio=0.3), draw(sum(counts)).to(dtype)
    valid = torch.ones(u.shape[:2], dtype=torch.bool)
    valid[0, 4] = not padded
    windows, outs, found, seen = {}, [], [], 0
    for count in counts:
        end = seen + count
        sites = Sites(u[:, seen:end], valid[:, seen:end] if padded and seen == 4 else None)
        with torch.no_grad():
            outs.append(decode(layer, sites, windows=windows, seen=seen, name="a"))
        found.append(windows["a"].held is not None)
        seen = end
    gap = torch.finfo(dtype).eps
    wanted = layer(u, valid_mask=valid).detach()
    torch.testing.assert_close(torch.cat(outs, dim=1), wanted, rtol=gap, atol=gap)
    assert found == held

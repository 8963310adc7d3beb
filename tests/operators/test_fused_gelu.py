"""Bias and GELU in one pass are the definition's, value and every gradient."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from depthpde.operators import reaction
from depthpde.operators.fused_gelu import linear_gelu, supports
from depthpde.threads import threads


def _given(sites=(3, 700), inner=24, outer=48) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((*sites, inner), (outer, inner), (outer,))
    return tuple(torch.randn(each, generator=draw).requires_grad_() for each in shapes)


def test_value_and_gradients_are_those_of_the_definition_in_double_precision():
    given = _given()
    assert supports(*given)
    exact = [each.detach().double().requires_grad_() for each in given]
    out, wanted = linear_gelu(*given), F.gelu(F.linear(*exact))
    g = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    found, truth = (
        torch.autograd.grad(out, given, g),
        torch.autograd.grad(wanted, exact, g.double()),
    )
    for ours, theirs in zip((out, *found), (wanted, *truth), strict=True):
        # sums of 24, 48 and 2,100 terms in float32
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=2e-4)


def test_the_function_is_that_of_double_precision_from_one_tail_to_the_other():
    y = torch.linspace(-12, 12, 2**16)[:, None].expand(-1, 16).contiguous().requires_grad_()
    zero, one = torch.zeros(16), torch.eye(16)
    out = linear_gelu(y, one, zero)
    (slope,) = torch.autograd.grad(out.sum(), y)
    exact = y.detach().double().requires_grad_()
    wanted = F.gelu(exact)
    (truth,) = torch.autograd.grad(wanted.sum(), exact)
    torch.testing.assert_close(out.double(), wanted, rtol=1.2e-7, atol=2.5e-7)
    torch.testing.assert_close(slope.double(), truth, rtol=0, atol=4e-7)
    assert (F.gelu(y).double() - wanted).abs().max() * 2 > (out.double() - wanted).abs().max()


def test_what_is_no_number_stays_none_and_infinity_itself():
    u, weight, bias = (each.detach() for each in _given(inner=48))
    weight = torch.eye(48)
    u[0, 1, 2], u[0, 2, 3] = torch.nan, torch.inf
    out = linear_gelu(u, weight, bias)
    assert out[0, 1].isnan().all()  # a product with the row that holds it
    assert torch.equal(out[1:].isfinite(), torch.ones_like(out[1:], dtype=torch.bool))


def test_second_derivatives_are_the_composites():
    given, second = _given(), []
    for apply in (linear_gelu, lambda *each: F.gelu(F.linear(*each))):
        (slope,) = torch.autograd.grad(apply(*given).square().sum(), given[0], create_graph=True)
        second.append(torch.autograd.grad(slope.square().mean(), given))
    for ours, theirs in zip(*second, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


def test_no_bit_depends_on_the_number_of_threads():
    found = []
    for count in (1, 2):
        with threads(count):
            u, _, bias = _given(inner=48)  # torch's own products with the identity are exact
            out = linear_gelu(u, torch.eye(48), bias)
            found.append((out, *torch.autograd.grad(out.sum(), (u, bias))))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_strided_slopes_and_frozen_weights_are_taken():
    u, weight, bias = _given()
    out = linear_gelu(u.transpose(0, 1), weight.detach(), bias)
    du, db = torch.autograd.grad(out.transpose(0, 1).square().sum(), (u, bias))
    wanted = F.gelu(F.linear(u, weight, bias)).square().sum()
    for ours, theirs in zip((du, db), torch.autograd.grad(wanted, (u, bias)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)


def test_what_the_kernel_does_not_do_it_does_not_claim_and_torch_does():
    u, weight, bias = (each.detach() for each in _given())
    assert supports(u, weight, bias)
    assert not supports(u, weight, None)
    assert not supports(u[:1, :10], weight, bias)
    assert not supports(u, weight[:47], bias[:47])
    assert not supports(u.double(), weight.double(), bias.double())
    assert not supports(u.to("meta"), weight, bias)
    with FlopCounterMode(display=False):
        assert not supports(u, weight, bias)
    with torch.autocast("cpu", torch.bfloat16):
        assert not supports(u, weight, bias)


@pytest.mark.parametrize("shape", [(1,), ()])
def test_a_bias_of_one_number_is_spread_as_torch_spreads_it(shape):
    u, weight, _ = (each.detach() for each in _given())
    bias = torch.full(shape, 0.5)
    assert not supports(u, weight, bias), "the kernel reads a number for every feature"
    found = reaction.feed_forward(u, weight, bias, torch.eye(48), None)
    torch.testing.assert_close(found, F.gelu(F.linear(u, weight, bias)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("place", range(3))
def test_a_tensor_that_another_library_made_is_left_to_torch(place):
    given = [each.detach() for each in _given()]
    given[place] = given[place].as_subclass(_Own)
    assert not supports(*given)


class _Own(Tensor):
    """Such as a quantized or a sharded one, whose numbers may lie elsewhere."""


@pytest.mark.parametrize("outer", [47, 48])
def test_the_feed_forward_is_the_same_by_either_way(outer):
    u, weight, bias = _given(outer=outer)
    back = torch.randn(24, outer, generator=torch.Generator().manual_seed(3))
    found = reaction.feed_forward(u, weight, bias, back, None)
    wanted = F.linear(F.gelu(F.linear(u, weight, bias)), back)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)

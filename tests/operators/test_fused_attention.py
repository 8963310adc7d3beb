"""One pass each way is the attention that its definition gives, value and every gradient."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from depthpde.operators import fused_attention as fused
from depthpde.operators.fused_attention import LONGEST, fused_attention, supports
from depthpde.threads import threads


def _fields(batch=3, heads=2, length=37, keys=None, head_dim=32, seed=0) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    lengths = (length, keys or length, keys or length)
    return tuple(
        torch.randn(batch, each, heads, head_dim, generator=draw).transpose(1, 2).requires_grad_()
        for each in lengths
    )


def _mask(batch: int, keys: int) -> Tensor:
    """Padding in front, behind and within; the last row is nothing but padding."""
    mask = torch.rand(batch, keys, generator=torch.Generator().manual_seed(5)) > 0.4
    mask[0, :3], mask[0, 3], mask[-1] = False, True, False
    return mask


def _reference(q, k, v, mask, causal) -> Tensor:
    seen = None if mask is None else (mask | ~mask.any(1, keepdim=True))[:, None, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal)


@pytest.mark.parametrize("registers", [1, 2, 3])
@pytest.mark.parametrize("case", ["plain", "causal", "masked", "cross", "one tile", "long"])
def test_value_and_gradients_are_those_of_the_definition_in_double_precision(case, registers):
    sizes = {"cross": {"keys": 23}, "one tile": {"length": 2 * fused.FLOATS}, "long": {"keys": 700}}
    q, k, v = _fields(head_dim=registers * fused.FLOATS, **sizes.get(case, {}))
    mask = _mask(3, k.shape[2]) if case == "masked" else None
    assert supports(q, k, mask, causal=case == "causal")
    out = fused_attention(q, k, v, mask, causal=case == "causal")
    exact = [each.detach().double().requires_grad_() for each in (q, k, v)]
    wanted = _reference(*exact, mask, case == "causal")
    g = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1))
    found = torch.autograd.grad(out, (q, k, v), g)
    truth = torch.autograd.grad(wanted, exact, g.double())
    # A sum of 700 terms of size one in float32 keeps about five digits.
    for ours, theirs in zip((out, *found), (wanted, *truth), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5)


def test_second_derivatives_are_the_composites():
    q, k, v = _fields(batch=1, heads=1, length=16)
    mask = torch.ones(1, 16, dtype=torch.bool)
    mask[:, 12:] = False
    for given in (None, mask):
        second = []
        for attend in (fused_attention, _plain):
            (slope,) = torch.autograd.grad(
                attend(q, k, v, given, causal=False).square().sum(), q, create_graph=True
            )
            second.append(torch.autograd.grad(slope.square().sum(), (q, k, v)))
        for ours, theirs in zip(*second, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def _plain(q, k, v, mask, *, causal):
    with sdpa_kernel(SDPBackend.MATH):
        return _reference(q, k, v, mask, causal)


def test_the_future_reaches_nothing_and_what_is_no_number_is_not_hidden():
    q, k, v = (each.detach() for each in _fields(length=40))
    before = fused_attention(q, k, v, None, causal=True)
    k[:, :, 20:], v[:, :, 20:] = 1e4, -3.0
    after = fused_attention(q, k, v, None, causal=True)
    assert torch.equal(before[:, :, :20], after[:, :, :20])
    assert not torch.equal(before[:, :, 20:], after[:, :, 20:])
    q[0, 0, 7, 3] = torch.nan
    assert fused_attention(q, k, v, None, causal=False)[0, 0, 7].isnan().all()


def test_scores_far_apart_neither_overflow_nor_vanish():
    q, k, v = (each.detach() for each in _fields())
    out = fused_attention(300 * q, 300 * k, v, None, causal=False)
    wanted = _reference(300 * q.double(), 300 * k.double(), v.double(), None, False)
    torch.testing.assert_close(out.double(), wanted, rtol=1e-3, atol=1e-3)


def test_no_bit_depends_on_the_number_of_threads():
    found = []
    for count in (1, 2):
        with threads(count):
            q, k, v = _fields(batch=8, heads=4, length=64)
            out = fused_attention(q, k, v, None, causal=False)
            found.append((out, *torch.autograd.grad(out.sum(), (q, k, v))))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_a_frozen_key_gets_no_gradient_and_the_others_theirs():
    q, k, v = _fields()
    out = fused_attention(q, k.detach(), v, None, causal=False)
    assert all(each is not None for each in torch.autograd.grad(out.sum(), (q, v)))


def test_a_head_of_sixteen_features_is_done_on_every_processor():
    q, k, _ = _fields(head_dim=16)
    assert supports(q, k, None, causal=False)


@pytest.mark.parametrize(
    ("changed", "causal"),
    [
        ({"length": 2 * fused.FLOATS - 1}, False),
        ({"head_dim": 2 * fused.FLOATS + 4}, False),
        ({"keys": LONGEST + 1}, False),
        ({"keys": 23}, True),
    ],
)
def test_what_the_kernel_does_not_do_it_does_not_claim(changed, causal):
    q, k, _ = _fields(**changed)
    assert not supports(q, k, None, causal=causal)


def test_transforms_and_watchers_of_torch_are_left_to_torch():
    q, k, _ = _fields()
    assert supports(q, k, None, causal=False)
    assert not supports(q.double(), k.double(), None, causal=False)
    assert not supports(q, k, _mask(3, 37), causal=True)
    with sdpa_kernel(SDPBackend.MATH):
        assert not supports(q, k, None, causal=False)
    with FlopCounterMode(display=False):
        assert not supports(q, k, None, causal=False)

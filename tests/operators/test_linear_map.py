"""oneDNN's products are the definition's, value and every gradient, and are sent by shape alone."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators import linear_map as module
from depthpde.operators.linear_map import (
    LEAST,
    WHOLE,
    linear_map,
    project,
    pull_back,
    weight_gradient,
)


@pytest.fixture
def sent(monkeypatch):
    """Send everything that may be sent, on any processor, and count it."""
    calls = []
    onednn = module._onednn

    def counted(u, weight, bias=None):
        calls.append((tuple(u.shape), tuple(weight.shape)))
        return onednn(u, weight, bias)

    for name, value in (
        ("FASTER", True), ("_WIDE", True), ("LEAST", 1), ("LEAST_GRADIENT", 1),
        ("LEAST_WEIGHTS", 1), ("_onednn", counted),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return calls


def _given(sites=(2, 64), inner=24, outer=40) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    shapes = ((*sites, inner), (outer, inner), (outer,))
    u, weight, bias = (torch.randn(each, generator=draw).requires_grad_() for each in shapes)
    return u, weight, bias


def _gradients(apply, given, g):
    out = apply(*given)
    return out, *torch.autograd.grad(out, given, g.to(out.dtype))


@pytest.mark.parametrize(("inner", "outer"), [(24, 40), (40, 24), (32, 32)])
@pytest.mark.parametrize("biased", [True, False])
def test_value_and_gradients_are_those_of_the_definition_in_double_precision(
    sent, inner, outer, biased
):
    given = _given(inner=inner, outer=outer)[: 3 if biased else 2]
    exact = [each.detach().double().requires_grad_() for each in given]
    g = torch.randn(2, 64, outer, generator=torch.Generator().manual_seed(1))
    found, wanted = _gradients(linear_map, given, g), _gradients(F.linear, exact, g)
    assert len(sent) == 3, "value, field and weights"
    for ours, theirs in zip(found, wanted, strict=True):
        # sums of at most 128 terms of size 1 in float32
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-4)


def test_rows_of_any_strides_are_the_same(sent):
    u, weight, bias = (each.detach() for each in _given())
    turned = u.mT.contiguous().mT
    assert not turned.is_contiguous()
    assert torch.equal(linear_map(turned, weight, bias), linear_map(u, weight, bias))
    g = torch.randn(64, 2, 40).transpose(0, 1)
    field = u.clone().requires_grad_()
    (du,) = torch.autograd.grad(linear_map(field, weight, bias), field, g)
    torch.testing.assert_close(du, g @ weight)
    assert len(sent) == 4


def test_second_derivatives_are_the_composites(sent):
    given, second = _given(sites=(64,), inner=6, outer=5), []
    for apply in (linear_map, F.linear):
        (slope,) = torch.autograd.grad(apply(*given).pow(3).sum(), given[0], create_graph=True)
        second.append(torch.autograd.grad(slope.square().sum(), given[:2]))
    assert sent
    for ours, theirs in zip(*second, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3 * theirs.abs().max().item())


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_only_what_is_asked_for_has_a_gradient(sent, wanted):
    given = [each.detach() for each in _given()]
    for place in wanted:
        given[place].requires_grad_()
    linear_map(*given).sum().backward()
    assert [k for k, each in enumerate(given) if each.grad is not None] == list(wanted)
    assert len(sent) == 1 + (0 in wanted) + (1 in wanted)


def test_what_is_sent_follows_from_the_shape_alone(monkeypatch):
    """A resumed run must meet the same library as an unbroken one."""
    monkeypatch.setattr(module, "FASTER", True)
    calls = []
    monkeypatch.setattr(module, "_onednn", lambda *given: calls.append(1) or F.linear(*given))
    weight = torch.randn(64, 64)
    rows = LEAST // weight.numel()
    for count, times in ((rows, 1), (rows + 1, 0), (rows - WHOLE, 0), (rows, 1)):
        calls.clear()
        linear_map(torch.randn(count, 64), weight)
        project(torch.randn(count, 64), weight)
        pull_back(torch.randn(count, 64), weight)
        assert len(calls) == 3 * times, count


def test_another_processor_keeps_torchs_own(monkeypatch):
    u, weight, bias = _given(sites=(4096,), inner=64, outer=64)
    monkeypatch.setattr(module, "FASTER", False)
    monkeypatch.setattr(module, "_onednn", None)
    assert torch.equal(linear_map(u, weight, bias), F.linear(u, weight, bias))
    assert torch.equal(weight_gradient(u, u), u.T @ u)


def test_onednn_switched_off_is_not_asked(sent):
    u, weight, bias = _given()
    torch._C._set_mkldnn_enabled(False)  # torch's own context warns of graphics cards
    try:
        found = linear_map(u, weight, bias)
    finally:
        torch._C._set_mkldnn_enabled(True)
    assert not sent
    assert torch.equal(found, F.linear(u, weight, bias))


@pytest.mark.parametrize(
    "case", ["double", "half", "meta", "autocast", "one row", "subclass", "compiled", "vmap", "jvp"]
)
def test_whatever_else_looks_on_meets_torchs_own(sent, case):
    u, weight, bias = (each.detach() for each in _given())
    wanted = F.linear(u, weight, bias)
    if case == "double":
        linear_map(u.double(), weight.double(), bias.double())
    elif case == "half":
        linear_map(u.bfloat16(), weight.bfloat16(), bias.bfloat16())
    elif case == "meta":
        assert linear_map(u.to("meta"), weight.to("meta"), bias.to("meta")).shape == wanted.shape
    elif case == "autocast":
        with torch.autocast("cpu", torch.bfloat16):
            assert linear_map(u, weight, bias).dtype == torch.bfloat16
    elif case == "one row":
        linear_map(u[0, 0], weight, bias)
    elif case == "subclass":
        linear_map(u, weight.as_subclass(_Own), bias)
    elif case == "compiled":
        mapped = torch.compile(linear_map, backend="eager", fullgraph=True)
        torch.testing.assert_close(mapped(u, weight, bias), wanted)
    elif case == "vmap":
        torch.testing.assert_close(
            torch.vmap(lambda each: linear_map(each, weight, bias))(u), wanted
        )
    else:
        _, slope = torch.func.jvp(lambda each: linear_map(each, weight, bias), (u,), (u,))
        torch.testing.assert_close(slope, F.linear(u, weight))
    assert not sent


@pytest.mark.parametrize("shape", [(1,), (), (2, 64, 40)])
def test_a_bias_that_is_not_one_number_a_feature_is_added_as_torch_adds_it(sent, shape):
    u, weight, _ = (each.detach() for each in _given())
    bias = torch.randn(shape, generator=torch.Generator().manual_seed(2)).requires_grad_()
    out = linear_map(u, weight, bias)
    assert torch.equal(out, F.linear(u, weight, bias))
    (found,) = torch.autograd.grad(out.sum(), bias)
    assert found.shape == shape
    assert not sent


class _Own(torch.Tensor):
    """A tensor that somebody else's library made, such as a quantized or sharded one."""

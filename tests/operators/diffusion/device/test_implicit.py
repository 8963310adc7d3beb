"""The implicit step in Triton: one launch a step, judged as the CPU's is."""

from __future__ import annotations

import pytest
import torch

from depthpde import Diffusion
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion import dispatch, implicit, reference
from depthpde.operators.diffusion.device.implicit import evolve
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme
from operators.diffusion import cases

SCHEMES = (Scheme.BACKWARD_EULER, Scheme.CRANK_NICOLSON)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("shape", "dilation"),
    [
        ((2, 1, 2), 1),
        ((3, 9, 3), 1),
        pytest.param((2, 8, 33), 3, marks=pytest.mark.drill),
    ],
)
def test_equals_the_reference_in_value_and_every_gradient(shape, dilation, scheme):
    problem, u = Problem(scheme=scheme, steps=2, dilation=dilation), cases.field(*shape)
    count = max(0, shape[1] - dilation)
    cut = open_edges(u, valid_mask=cases.mask(u), dilation=dilation) if count else None
    for ratio in (torch.rand(1, 1, shape[2]), torch.rand(shape[0], max(count, 1), 1)):
        for edges in (None, cut):
            got, wanted = (
                cases.value_and_gradients(
                    lambda u, r, f=f, e=edges: f(u, r, e, problem), u, 2 * ratio.double()
                )
                for f in (evolve, reference.evolve)
            )
            cases.assert_same(got, wanted, 1e-11)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, at ∞ − ∞
@pytest.mark.parametrize("scheme", SCHEMES)
def test_half_precision_is_rounded_once_and_padding_stays_itself(scheme):
    u, problem = cases.field(3, 12, 5, torch.bfloat16), Problem(scheme=scheme, steps=2)
    valid = cases.mask(u)
    edges, ratio = open_edges(u, valid_mask=valid), torch.full((1, 1, 5), 0.7)
    filled = u.masked_fill(~valid[..., None], float("inf"))
    out = evolve(filled, ratio, edges, problem)
    wanted = reference.evolve(u.double(), ratio.double(), edges, problem)
    assert out.dtype is torch.bfloat16
    assert torch.equal(out[~valid], filled[~valid])
    error = (out.double() - wanted)[valid].abs() / wanted[valid].abs().clamp(min=0.1)
    assert error.max() <= torch.finfo(torch.bfloat16).eps  # the interpreter cuts off, a GPU rounds


def test_the_layer_takes_it_where_a_gpu_is(monkeypatch):
    u, layer = cases.field(2, 10, 6, torch.float32), Diffusion(6, scheme="backward_euler")
    wanted = layer(u)
    for module in (dispatch, implicit):
        monkeypatch.setattr(module, "on_gpu", lambda u: True)
    monkeypatch.setattr(implicit, "_on_cpu", None)
    torch.testing.assert_close(layer(u), wanted)

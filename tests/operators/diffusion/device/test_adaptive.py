"""The adaptive step in Triton: one launch each way, judged as the CPU's is."""

from __future__ import annotations

import pytest
import torch

from depthpde import AdaptiveDiffusion
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion import adaptive
from depthpde.operators.diffusion.device.adaptive import evolve
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme
from operators.diffusion import cases
from operators.diffusion.test_adaptive import by_dense_matrix, params

PROBLEMS = {"explicit": Problem(), "upwind": Problem(scheme=Scheme.UPWIND)}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 2, 1), (2, 17, 70), (2, 40, 16)])
def test_equals_the_reference_in_value_and_every_gradient(shape, problem):
    u, row = cases.field(*shape), params(shape[2])
    cut = None if shape[1] == 1 else open_edges(u, valid_mask=cases.mask(u))
    for edges in (None, cut):
        got, wanted = (
            cases.value_and_gradients(lambda u, r, f=f, e=edges: f(u, r, e, problem), u, row)
            for f in (evolve, by_dense_matrix)
        )
        cases.assert_same(got, wanted, 1e-12)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, at ∞ − ∞
@pytest.mark.parametrize("beyond", [float("nan"), float("inf")])
def test_what_stands_beyond_a_wall_tells_nothing(beyond):
    u, row = cases.field(3, 12, 4), params(4)
    valid = cases.mask(u)
    edges = open_edges(u, valid_mask=valid)
    filled = u.masked_fill(~valid[..., None], beyond)
    clean, got = (
        cases.value_and_gradients(
            lambda u, r: torch.where(valid[..., None], evolve(u, r, edges, Problem()), 0.0), x, row
        )
        for x in (u, filled)
    )
    cases.assert_same(got, clean, 1e-13)
    kept = evolve(filled, row, edges, Problem())[~valid]
    torch.testing.assert_close(kept, torch.full_like(kept, beyond), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype):
    u, row = cases.field(2, 40, 21, dtype), params(21, torch.float32)
    out = evolve(u, row, None, Problem())
    wanted = by_dense_matrix(u.double(), row.double(), None, Problem())
    size = wanted.abs().clamp(min=wanted.abs().mean())
    assert out.dtype is dtype
    ulp = 1.0 if dtype is torch.bfloat16 else 0.5  # the interpreter cuts bfloat16 off, a GPU rounds
    assert ((out.double() - wanted).abs() / size).max() <= ulp * torch.finfo(dtype).eps + 1e-5


def test_the_layer_takes_it_where_a_gpu_is(monkeypatch):
    u, layer = cases.field(2, 20, 6, torch.float32), AdaptiveDiffusion(6)
    wanted = layer(u)
    monkeypatch.setattr(adaptive, "on_gpu", lambda u: True)
    monkeypatch.setattr(adaptive, "evolve", None)  # not the CPU's
    torch.testing.assert_close(layer(u), wanted)

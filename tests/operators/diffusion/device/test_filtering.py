"""Filters in Triton against their dense definition, and the layers that take them on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradgradcheck

from depthpde import Boundary, LearnedStencil, MultiscaleDiffusion
from depthpde.layers import multiscale
from depthpde.operators.diffusion import filtering, taps
from depthpde.operators.diffusion.device import filtering as device
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme
from operators.diffusion import cases
from operators.diffusion.test_filtering import REFLECT, REPEAT, ZEROS, dense, make, pieces

PROBLEMS = {"mirrored": REFLECT, "causal": REPEAT, "zeros": ZEROS}


def by_definition(u, taps, edges, problem):
    """Filter by the dense matrix, from taps by distance."""
    past = taps.flip(1)
    whole = past if problem.scheme is Scheme.UPWIND else torch.cat((past, taps[:, 1:]), dim=1)
    return dense(u, whole, edges, problem)


def by_distance(problem, length, dim, reach, **rest):
    u, whole = make(problem, length, dim, reach, **rest)
    return u, whole[:, -reach - 1 :]


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize(
    ("length", "reach"),
    [(1, 2), (5, 7), (40, 3), pytest.param(150, 6, marks=pytest.mark.drill)],
)
def test_equals_the_definition_in_value_and_every_gradient(problem, length, reach):
    u, weights = by_distance(problem, length, 3, reach)
    for edges in (None, pieces(u)) if length > 1 else (None,):
        for run in (device.evolve, device.composite):
            got, wanted = (
                cases.value_and_gradients(
                    lambda u, a, f=f, e=edges: f(u, a, e, problem), u, weights
                )
                for f in (run, by_definition)
            )
            cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_every_sequence_may_have_its_own_taps(problem):
    u, weights = by_distance(problem, 9, 2, 4, batch=3)
    got, wanted = (
        cases.value_and_gradients(lambda u, a, f=f: f(u, a, None, problem), u, weights)
        for f in (device.evolve, by_definition)
    )
    cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype):
    u, weights = by_distance(REFLECT, 50, 5, 4)
    u, weights = u.to(dtype), (weights / 9).float()
    out = device.evolve(u, weights, None, REFLECT)
    wanted = by_definition(u.double(), weights.double(), None, REFLECT)
    size = wanted.abs().clamp(min=wanted.abs().mean())
    assert out.dtype is dtype
    ulp = 1.0 if dtype is torch.bfloat16 else 0.5  # the interpreter cuts bfloat16 off, a GPU rounds
    assert ((out.double() - wanted).abs() / size).max() <= ulp * torch.finfo(dtype).eps + 1e-5


def test_second_derivatives():
    u, weights = by_distance(REFLECT, 3, 1, 1)
    u = u[:1]
    leaves = u.requires_grad_(), weights.requires_grad_()
    assert gradgradcheck(lambda u, a: device.evolve(u, a, None, REFLECT), leaves)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "build",
    [
        lambda causal: MultiscaleDiffusion(4, scales="medium slow", causal=causal),
        lambda causal: LearnedStencil(4, reach=3, symmetric=not causal, causal=causal),
    ],
)
def test_the_layers_take_it_where_a_gpu_is(build, causal, monkeypatch):
    u, layer = cases.field(2, 30, 4, torch.float32).requires_grad_(), build(causal)
    leaves = (u, *layer.parameters())
    wanted = torch.autograd.grad((layer(u) * u.detach().cos()).sum(), leaves)
    for module in (filtering, taps, multiscale):
        monkeypatch.setattr(module, "on_gpu", lambda u: True)
    monkeypatch.setattr(filtering, "evolve", None)  # not the CPU's
    got = torch.autograd.grad((layer(u) * u.detach().cos()).sum(), leaves)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_taps_that_are_not_mirrored_are_gathered(monkeypatch):
    u, whole = make(REFLECT, 12, 3, 2)
    wanted = filtering.composite(u, whole, None, REFLECT)
    monkeypatch.setattr(filtering, "on_gpu", lambda u: True)
    assert torch.allclose(filtering.convolve(u, whole, None, REFLECT), wanted)
    ring = Problem(boundary=Boundary.PERIODIC)
    whole = whole + whole.flip(1)
    got = filtering.convolve(u, whole, None, ring, mirrored=True)
    assert torch.allclose(got, filtering.composite(u, whole, None, ring))

"""Scales mixed by weights of every site: the kernel against the sum of dense steps."""

from __future__ import annotations

import pytest
import torch

from depthpde import diffuse
from depthpde.operators.boundary import Boundary, open_edges
from depthpde.operators.diffusion import gated
from depthpde.operators.diffusion.gated import mix_filters
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.diffusion.taps import scale_taps
from depthpde.operators.stability import Scheme

STEPS = (6, 2, 1)


def draw(length, dim, dtype=torch.float64):
    generator = torch.Generator().manual_seed(length)
    u = torch.randn(2, length, dim, generator=generator, dtype=torch.float64)
    ratios = 0.02 + 0.2 * torch.rand(len(STEPS), dim, generator=generator, dtype=torch.float64)
    weights = torch.randn(2, length, len(STEPS), generator=generator, dtype=torch.float64)
    return [each.to(dtype) for each in (u, ratios, weights.softmax(dim=-1))]


def walls(length, dim):
    sites = torch.arange(length)
    valid = torch.stack((sites >= 0, (sites < length - 3) & (sites != 5)))
    return {"valid_mask": valid, "segments": (sites // 11).expand(2, -1)}


def by_dense_steps(u, ratios, weights, scheme, cut):
    parts = [
        diffuse(u, ratios[s], steps=count, scheme=scheme, method="reference", **cut)
        for s, count in enumerate(STEPS)
    ]
    return sum(weights[..., s, None] * part for s, part in enumerate(parts))


@pytest.mark.parametrize("scheme", [Scheme.EXPLICIT, Scheme.UPWIND])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("length", "dim"), [(1, 3), (9, 16), (150, 21)])
def test_equals_the_dense_reference_in_value_and_every_gradient(scheme, cut, length, dim):
    given = walls(length, dim) if cut else {}
    leaves = [each.requires_grad_() for each in draw(length, dim)]
    problem, edges = Problem(scheme=scheme), open_edges(leaves[0], **given)
    outs = (
        mix_filters(*leaves, edges, problem, STEPS),
        by_dense_steps(*leaves, scheme, given),
    )
    torch.testing.assert_close(*outs, rtol=0, atol=1e-12)
    found = [torch.autograd.grad(out.sin().sum(), leaves) for out in outs]
    # Weights that sum to 1 leave u alone where no scale changes it, so the part of their gradient
    # that is the same for every scale has no meaning there, and the kernel leaves it out.
    centred = [[*each[:2], each[2] - each[2].mean(dim=-1, keepdim=True)] for each in found]
    for got, wanted in zip(*centred, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", [Scheme.EXPLICIT, Scheme.UPWIND])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precisions_are_near_float64_in_value_and_every_gradient(dtype, scheme):
    u, ratios, weights = draw(150, 21)
    exactly = [u.to(dtype).double(), ratios, weights]
    roughly = [u.to(dtype), ratios.float(), weights.float()]
    problem, found = Problem(scheme=scheme), []
    for leaves in (roughly, exactly):
        out = mix_filters(*(each.requires_grad_() for each in leaves), None, problem, STEPS)
        g = torch.ones_like(u).cumsum(dim=1).sin().to(dtype).to(out.dtype)
        found.append((out, *torch.autograd.grad(out, leaves, g)))
    assert found[0][0].dtype is dtype
    # Sums are taken in float32 whatever the field: over 24 terms at a site, over 300 sites for r;
    # fields are rounded once more when they are stored.
    single = torch.finfo(torch.float32).eps
    field = torch.finfo(dtype).eps + 24 * single
    for got, wanted, share in zip(*found, (field, field, 300 * single, 24 * single), strict=True):
        assert (got.double() - wanted).abs().max() <= share * wanted.abs().max()


@pytest.mark.parametrize("scheme", [Scheme.EXPLICIT, Scheme.UPWIND])
@pytest.mark.parametrize("boundary", [Boundary.PERIODIC, Boundary.FIXED])
def test_the_adjoint_is_the_gradient_of_the_sum_of_filters_at_other_ends(scheme, boundary):
    leaves = [each.requires_grad_() for each in draw(140, 5)]
    problem = Problem(scheme=scheme, boundary=boundary)
    outs = [
        mix_filters(*leaves, None, problem, STEPS),
        gated._composite(leaves[0], _taps(leaves[1], problem), leaves[2], None, problem),
    ]
    grads = [torch.autograd.grad(out.sin().sum(), leaves) for out in outs]
    for got, wanted in zip(*grads, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)


def _taps(ratios, problem):
    return scale_taps(ratios, STEPS, causal=problem.scheme is Scheme.UPWIND)


@pytest.mark.parametrize("scheme", [Scheme.EXPLICIT, Scheme.UPWIND])
def test_gradients_do_not_cross_a_wall_to_the_bit(scheme):
    u, ratios, weights = draw(40, 16, torch.float32)
    edges, found = open_edges(u, **walls(40, 16)), []
    for fill in (1.0, float("nan")):
        field, shares = u.clone().requires_grad_(), weights.clone().requires_grad_()
        g = torch.ones_like(u)
        g[:, 11:22] = fill
        out = mix_filters(field, ratios, shares, edges, Problem(scheme=scheme), STEPS)
        found.append(torch.autograd.grad(out, (field, shares), g))
    keep = (torch.arange(40) < 11) | (torch.arange(40) >= 22)
    for plain, spoilt in zip(*found, strict=True):
        assert torch.equal(plain[:, keep], spoilt[:, keep])


def test_walls_and_sites_between_them_are_exact_to_the_bit():
    u, ratios, weights = draw(40, 16, torch.float32)
    cut = walls(40, 16)
    edges = open_edges(u, **cut)
    other = u.clone()
    other[:, 11:22] = float("nan")
    problem = Problem()
    runs = [mix_filters(each, ratios, weights, edges, problem, STEPS) for each in (u, other)]
    keep = torch.ones(40, dtype=torch.bool)
    keep[11:22] = False
    assert torch.equal(runs[0][:, keep], runs[1][:, keep])
    assert torch.equal(runs[0][1, ~cut["valid_mask"][1]], u[1, ~cut["valid_mask"][1]])


def test_second_derivatives_and_transforms_are_those_of_the_sum():
    leaves = [each.requires_grad_() for each in draw(9, 3)]
    problem = Problem()

    def run(*given):
        return mix_filters(*given, None, problem, STEPS)

    assert torch.autograd.gradgradcheck(run, leaves, atol=1e-6)
    grads = torch.func.grad(lambda u: run(u, *leaves[1:]).sin().sum())(leaves[0])
    wanted = torch.autograd.grad(run(*leaves).sin().sum(), leaves[0])[0]
    torch.testing.assert_close(grads, wanted)

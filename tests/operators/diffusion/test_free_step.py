"""A layer's step as one node of autograd is the ratio and then the step, in all that it gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from depthpde.operators.diffusion import free_step
from depthpde.operators.diffusion.dispatch import evolve
from depthpde.operators.diffusion.free_step import evolve_free
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme, ratio_from_free, ratio_from_projection

EDGES = torch.tensor([[True] * 4 + [False] + [True] * 4])


def in_two(u: Tensor, theta: Tensor, bound: float, problem: Problem, projected: bool) -> Tensor:
    to_ratio = ratio_from_projection if projected else ratio_from_free
    return evolve(u, to_ratio(theta, bound).reshape(1, 1, -1), EDGES, problem)


def leaves(dtype: torch.dtype, ratios: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    free = torch.float64 if dtype is torch.float64 else torch.float32
    u = torch.randn(3, 10, 8, dtype=torch.float64).to(dtype)
    theta = 0.2 * torch.randn(ratios, dtype=torch.float64)  # some beyond the projection's ends
    return u.requires_grad_(), theta.to(free).requires_grad_()


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("scheme", [Scheme.EXPLICIT, Scheme.UPWIND])
@pytest.mark.parametrize("ratios", [1, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_the_ratio_and_then_the_step(projected, scheme, ratios, dtype):
    problem, (u, theta) = Problem(scheme=scheme), leaves(dtype, ratios)
    got = evolve_free(u, theta, 0.25, EDGES, problem, projected=projected)
    wanted = in_two(u, theta, 0.25, problem, projected)
    assert torch.equal(got, wanted)
    with torch.no_grad():
        assert torch.equal(evolve_free(u, theta, 0.25, EDGES, problem, projected=projected), wanted)
    g = torch.randn_like(u)
    mine = torch.autograd.grad(got, (u, theta), g)
    theirs = torch.autograd.grad(wanted, (u, theta), g)
    assert torch.equal(mine[0], theirs[0])
    assert mine[1].shape == theta.shape
    torch.testing.assert_close(mine[1], theirs[1])  # sums over the sequences in another order


def test_a_gradient_that_comes_in_may_itself_need_one():
    u, theta = leaves(torch.float32, 8)
    y = evolve_free(u, theta, 0.25, None, Problem(), projected=False)
    g = torch.randn_like(u).requires_grad_()
    got = torch.autograd.grad(y, (u, theta), g, retain_graph=True)
    wanted = torch.autograd.grad(y, (u, theta), g.detach())
    assert all(map(torch.equal, got, wanted))


def test_the_short_way_is_one_node():
    u, theta = leaves(torch.float32, 8)
    node = evolve_free(u, theta, 0.25, None, Problem(), projected=False).grad_fn
    assert [type(each[0]).__name__ for each in node.next_functions[:2]] == ["AccumulateGrad"] * 2


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("only", [None, 0, 1])
def test_derivatives_of_derivatives(projected, only):
    u, theta = leaves(torch.float64, 2)
    u = u[:1, :4, :2].detach().requires_grad_(only != 1)
    theta = (0.1 + 0.05 * theta).detach().requires_grad_(only != 0)

    def run(*wanted: Tensor) -> Tensor:
        given = {None: wanted, 0: (*wanted, theta), 1: (u, *wanted)}[only]
        return evolve_free(*given, 0.25, None, Problem(), projected=projected)

    inputs = tuple(x for x in (u, theta) if x.requires_grad)
    assert torch.autograd.gradgradcheck(run, inputs)


def test_transforms_and_several_steps_go_the_long_way(monkeypatch):
    monkeypatch.setattr(free_step._Step, "apply", None)  # it would fail if it were called
    u, theta = leaves(torch.float64, 8)
    problem = Problem()

    def run(theta: Tensor) -> Tensor:
        return evolve_free(u, theta, 0.25, EDGES, problem, projected=False)

    wanted = torch.autograd.grad(in_two(u, theta, 0.25, problem, False).sum() ** 2, theta)[0]
    got = torch.func.grad(lambda theta: run(theta).sum() ** 2)(theta.detach())
    torch.testing.assert_close(got, wanted)
    value, tangent = torch.func.jvp(run, (theta.detach(),), (torch.ones(8, dtype=torch.float64),))
    torch.testing.assert_close(value, in_two(u, theta, 0.25, problem, False).detach())
    assert tangent.abs().max() > 0
    mapped = torch.func.vmap(run)(torch.stack((theta.detach(), theta.detach())))
    assert torch.equal(mapped[0], mapped[1])
    evolve_free(u, theta, 0.25, None, Problem(steps=3), projected=False).sum().backward()

"""The exponential average against its definition, in value and every gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from depthpde.operators.average import composite, exponential_average
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme


def dense(u: Tensor, q: Tensor, edges: Tensor | None, causal: bool) -> Tensor:
    """y = W u with rows Σ_j W_ij = 1, W_ij ∝ q^{i−j} over the sites of the same piece."""
    length = u.shape[1]
    opened = torch.ones(1, length - 1, dtype=torch.bool) if edges is None else edges
    piece = torch.nn.functional.pad((~opened).cumsum(1), (1, 0))
    gap = torch.arange(length)[:, None] - torch.arange(length)
    joined = (piece[:, :, None] == piece[:, None]) & (gap >= 0)
    weights = q[:, None, None] ** gap.clamp(min=0) * joined[:, None]
    past = weights / weights.sum(-1, keepdim=True)
    if causal:
        matrix = past
    else:
        ahead = (q[:, None, None] ** gap.mT.clamp(min=0)) * joined[:, None].mT
        matrix = (past + ahead / ahead.sum(-1, keepdim=True)) / 2
    return torch.einsum("bdij,bjd->bid", matrix.expand(u.shape[0], -1, -1, -1), u)


def case(dim: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(dim)
    q = torch.rand(dim, dtype=torch.float64 if dtype is torch.float64 else torch.float32)
    return torch.randn(3, 21, dim, dtype=dtype), q, torch.rand(3, 20) > 0.25


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("walls", [False, True])
@pytest.mark.parametrize("dim", [1, 37])
def test_it_is_its_definition_in_value_and_every_gradient(causal, walls, dim):
    u, q, edges = case(dim)
    edges = edges if walls else None
    leaves = u.requires_grad_(), q.requires_grad_()
    wanted, got = dense(u, q, edges, causal), exponential_average(u, q, edges, causal=causal)
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
    g = torch.randn_like(u)
    for mine, theirs in zip(
        torch.autograd.grad(got, leaves, g), torch.autograd.grad(wanted, leaves, g), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype, causal):
    u, q, edges = case(37, dtype)
    exact = dense(u.double(), q.double(), edges, causal)
    got = exponential_average(u, q, edges, causal=causal)
    assert got.dtype is dtype
    # one rounding to nearest is half a unit in the last place; float32 sums add a few of theirs
    unit = torch.finfo(dtype).eps * (0.51 if dtype is torch.bfloat16 else 4)
    assert ((got.double() - exact).abs() <= unit * exact.abs() + 1e-6).all()


@pytest.mark.parametrize("causal", [False, True])
def test_padding_keeps_its_bits_and_nothing_leaks_from_it(causal):
    u, q, _ = case(5, torch.float32)
    valid = torch.arange(21)[None] < torch.tensor([[21], [13], [4]])
    u[~valid] = float("nan")
    edges = open_edges(u, valid_mask=valid)
    leaves = u.requires_grad_(), q.requires_grad_()
    y = exponential_average(u, q, edges, causal=causal)
    assert y[~valid].isnan().all()
    by_u, by_q = torch.autograd.grad(y[valid].sum(), leaves)
    assert by_q.isfinite().all()
    alone = exponential_average(u[1:2, :13].detach(), q, None, causal=causal)
    assert torch.equal(y[1:2, :13], alone)
    assert by_u[valid].isfinite().all()
    assert torch.equal(by_u[~valid], torch.zeros_like(by_u[~valid]))


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_of_derivatives(causal):
    u, q, edges = case(2)
    small = u[:2, :5].clone().requires_grad_(), q.clone().requires_grad_()

    def run(u: Tensor, q: Tensor) -> Tensor:
        return exponential_average(u, q, edges[:2, :4], causal=causal)

    assert torch.autograd.gradgradcheck(run, small)


def test_transforms_take_the_path_made_of_torch_operations():
    u, q, edges = case(3)
    problem = Problem(scheme=Scheme.EXPLICIT)
    mapped = torch.func.vmap(lambda v: exponential_average(v, q, edges, causal=False))
    fields = torch.stack((u, 2 * u))
    torch.testing.assert_close(
        mapped(fields)[1], exponential_average(2 * u, q, edges, causal=False)
    )
    _, tangent = torch.func.jvp(
        lambda q: exponential_average(u, q, edges, causal=False), (q,), (torch.ones_like(q),)
    )
    step = 1e-6
    ahead, behind = (composite(u, (q + s)[None, None], edges, problem) for s in (step, -step))
    torch.testing.assert_close(tangent, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7)

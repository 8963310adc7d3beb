"""The adaptive step in one pass: against the composite, in value and every gradient."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde import AdaptiveDiffusion
from depthpde.operators.boundary import open_edges
from depthpde.operators.diffusion import reference
from depthpde.operators.diffusion.adaptive import composite, evolve
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme
from operators.diffusion import cases

PROBLEMS = {"explicit": Problem(), "upwind": Problem(scheme=Scheme.UPWIND)}


def params(dim, dtype=torch.float64):
    row = torch.linspace(0.2, 1.0, 1 + dim, dtype=torch.float64) / torch.tensor(
        [1.0] + [dim] * dim, dtype=torch.float64
    )
    return row.to(dtype)[None, None]


def by_dense_matrix(u, row, edges, problem):
    """Take the step by the dense reference, whose ratio of each edge is computed first."""
    gap = u[:, 1:] - u[:, :-1]
    distance = (gap**2 * row[..., 1:]).sum(dim=-1, keepdim=True)
    return reference.evolve(u, row[..., :1] * torch.exp(-distance), edges, problem)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 2, 1), (2, 17, 70), (3, 90, 16), (1, 300, 3)])
def test_equals_the_reference_in_value_and_every_gradient(shape, problem):
    u, row = cases.field(*shape), params(shape[2])
    cut = None if shape[1] == 1 else open_edges(u, valid_mask=cases.mask(u))
    for edges in (None, cut):
        wanted = cases.value_and_gradients(
            lambda u, r, e=edges: by_dense_matrix(u, r, e, problem), u, row
        )
        for run in (evolve, composite):
            got = cases.value_and_gradients(
                lambda u, r, f=run, e=edges: f(u, r, e, problem), u, row
            )
            cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_first_and_second_derivatives(problem):
    u, row = cases.field(2, 5, 3).requires_grad_(), params(3).requires_grad_()
    assert gradcheck(lambda u, r: evolve(u, r, None, problem), (u, row))
    assert gradgradcheck(lambda u, r: evolve(u, r, None, problem), (u, row))
    g = u.detach().cos().requires_grad_()

    def pulled(g, u):
        return torch.autograd.grad(evolve(u, row, None, problem), u, g, create_graph=True)[0]

    assert gradcheck(pulled, (g, u))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_half_precision_is_rounded_once(problem, dtype):
    u, row = cases.field(2, 70, 21, dtype), params(21, torch.float32)
    out = evolve(u, row, None, problem)
    wanted = by_dense_matrix(u.double(), row.double(), None, problem)
    size = wanted.abs().clamp(min=wanted.abs().mean())
    assert out.dtype is dtype
    assert ((out.double() - wanted).abs() / size).max() <= 0.5 * torch.finfo(dtype).eps + 1e-5


def test_vmap_and_opcheck():
    u, row = cases.field(2, 9, 3), params(3)
    many = torch.stack((u, 2 * u))
    mapped = torch.func.vmap(lambda u: evolve(u, row, None, Problem()))(many)
    looped = torch.stack([evolve(each, row, None, Problem()) for each in many])
    torch.testing.assert_close(mapped, looped, rtol=0, atol=1e-13)
    settings = (u.requires_grad_(), row.requires_grad_(), None, 1, "explicit", "no_flux", 1, 0)
    result = torch.library.opcheck(torch.ops.depthpde.diffuse_adaptive.default, settings)
    assert set(result.values()) == {"SUCCESS"}


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    ("dtype", "log_sensitivity"),
    [(torch.float16, 12.0), (torch.float16, 6e4), (torch.float32, 89.0), (torch.float32, 3e38),
     (torch.float64, 800.0)],
)  # fmt: skip
def test_stays_finite_for_every_sensitivity_though_neighbours_are_equal(
    dtype, log_sensitivity, steps
):
    layer = AdaptiveDiffusion(6, steps=steps, dtype=dtype)
    torch.nn.init.constant_(layer.log_sensitivity, log_sensitivity)
    u = cases.field(2, 9, 6, dtype)
    u[:, 4] = u[:, 3]
    u = u.requires_grad_()
    out = layer(u)
    out.float().square().sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(u.grad).all()
    assert all(torch.isfinite(each.grad).all() for each in layer.parameters())
    torch.testing.assert_close(out, u)  # nothing passes but between equals


def test_what_is_no_number_stays_behind_its_wall():
    u, row = cases.field(3, 20, 5), params(5)
    valid = cases.mask(u)
    edges = open_edges(u, valid_mask=valid)

    def run(u, r):
        return torch.where(valid[..., None], evolve(u, r, edges, Problem()), 0.0)

    wanted = cases.value_and_gradients(run, u, row)
    for beyond in (torch.nan, torch.inf):
        got = cases.value_and_gradients(run, u.masked_fill(~valid[..., None], beyond), row)
        cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("dim", [6, 32])
def test_a_causal_site_is_not_touched_by_a_later_one_that_is_no_number(dim):
    layer, u = AdaptiveDiffusion(dim, causal=True), torch.randn(1, 5, dim)
    spoilt = u.clone()
    spoilt[:, 3] = torch.nan
    assert torch.equal(layer(spoilt)[:, :3], layer(u)[:, :3])

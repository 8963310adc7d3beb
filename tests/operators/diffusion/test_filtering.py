"""A filter against its definition as a dense matrix, site by site, in value and every gradient."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from depthpde.operators.boundary import Boundary, open_edges
from depthpde.operators.diffusion import filtering
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.kernels import filters
from depthpde.operators.stability import Scheme
from operators.diffusion import cases

REFLECT = Problem(scheme=Scheme.EXPLICIT)
REPEAT = Problem(scheme=Scheme.UPWIND)
WRAP = Problem(boundary=Boundary.PERIODIC)
ZEROS = Problem(scheme=Scheme.UPWIND, boundary=Boundary.FIXED)


def copied_site(j: int, low: int, high: int, problem: Problem) -> int:
    """Walk from site j back into the piece, one wall at a time."""
    if problem.boundary is Boundary.PERIODIC:
        while not low <= j < high:
            j += (high - low) * (1 if j < low else -1)
    elif problem.scheme is Scheme.UPWIND:
        j = max(j, low)
    else:
        while not low <= j < high:
            j = 2 * low - 1 - j if j < low else 2 * high - 1 - j
    return j


def dense(u, taps, edges, problem):
    """Multiply with the matrix of the definition, assembled entry by entry."""
    batch, length, dim = u.shape
    num_taps = taps.shape[1]
    past = num_taps - 1 if problem.scheme is Scheme.UPWIND else num_taps // 2
    rows = []
    for b in range(batch):
        opened = [True] * (length - 1) if edges is None else edges[b % edges.shape[0]].tolist()
        own = taps[b % taps.shape[0]].expand(-1, dim)
        for i in range(length):
            low = i
            while low > 0 and opened[low - 1]:
                low -= 1
            high = i + 1
            while high < length and opened[high - 1]:
                high += 1
            if high - low == 1 and problem is not ZEROS:
                rows.append(u[b, i])
                continue
            places = [i + k - past for k in range(num_taps)]
            sources = [copied_site(j, low, high, problem) for j in places]
            there = torch.tensor([low <= j < high or problem is not ZEROS for j in places])
            rows.append((own * u[b, sources] * there[:, None]).sum(dim=0))
    return torch.stack(rows).reshape(u.shape)


def make(problem, length, dim, reach, *, symmetric=False, batch=1, dtype=torch.float64):
    num_taps = reach + 1 if problem.scheme is Scheme.UPWIND else 2 * reach + 1
    generator = torch.Generator().manual_seed(length + 7 * reach + dim)
    taps = torch.randn(batch, num_taps, dim, generator=generator, dtype=torch.float64)
    if symmetric:
        taps = taps + taps.flip(1)
    return cases.field(3, length, dim, dtype), taps.to(dtype)


def pieces(u):
    """Cut the edges so that pieces of one, two, three … sites stand beside long ones."""
    segments = torch.tensor(
        [(i * (i + b)) ** 0.5 // 2 for b in range(len(u)) for i in range(u.shape[1])]
    )
    valid = cases.mask(u)
    return open_edges(u, valid_mask=valid, segments=segments.reshape(len(u), -1).long())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    "problem", [REFLECT, REPEAT, WRAP, ZEROS], ids=["reflect", "repeat", "wrap", "zeros"]
)
@pytest.mark.parametrize(
    ("length", "dim", "reach"),
    [(1, 1, 1), (2, 3, 5), (7, 17, 1), (9, 5, 40), (40, 3, 16), (150, 2, 5), (300, 16, 2)],
)
def test_equals_its_definition_in_value_and_every_gradient(problem, length, dim, reach, symmetric):
    u, taps = make(problem, length, dim, reach, symmetric=symmetric)
    cut = None if problem is WRAP or length == 1 else pieces(u)
    for edges in (None, cut):
        for run in (filtering.evolve, filtering.composite):
            got, wanted = (
                cases.value_and_gradients(lambda u, a, f=f, e=edges: f(u, a, e, problem), u, taps)
                for f in (run, dense)
            )
            cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("problem", [REFLECT, REPEAT], ids=["reflect", "repeat"])
def test_half_precision_is_rounded_once(problem, dtype):
    u, taps = make(problem, 70, 21, 16, symmetric=problem is REFLECT, dtype=dtype)
    taps = taps.float() / 33
    g, edges = u.flip(0).contiguous(), pieces(u)
    exact = u.double().requires_grad_(), taps.double().requires_grad_()
    value = dense(*exact, edges, problem)
    wanted = (value.detach(), *torch.autograd.grad(value, exact, g.double()))
    grad_u, grad_taps = filtering.pull(g, u, taps, edges, problem)
    for got, other in zip(
        (filtering.apply(u, taps, edges, problem), grad_u), wanted[:2], strict=True
    ):
        assert got.dtype is dtype
        size = other.abs().clamp(min=other.abs().mean())
        assert ((got.double() - other).abs() / size).max() <= 0.5 * torch.finfo(dtype).eps + 1e-5
    assert grad_taps.dtype is torch.float32
    torch.testing.assert_close(grad_taps.double(), wanted[2], rtol=1e-5, atol=1e-4)


def test_taps_of_their_own_for_every_sequence():
    u, taps = make(REFLECT, 30, 4, 3, batch=3)
    got, wanted = (
        cases.value_and_gradients(lambda u, a, f=f: f(u, a, None, REFLECT), u, taps)
        for f in (filtering.evolve, dense)
    )
    cases.assert_same(got, wanted, 1e-12)


@pytest.mark.parametrize("problem", [REFLECT, REPEAT, WRAP], ids=["reflect", "repeat", "wrap"])
def test_second_derivatives_and_forward_mode(problem):
    u, taps = make(problem, 6, 2, 2)
    u, taps = u.requires_grad_(), taps.requires_grad_()
    assert gradcheck(lambda u, a: filtering.evolve(u, a, None, problem), (u, taps))
    assert gradgradcheck(lambda u, a: filtering.evolve(u, a, None, problem), (u, taps))
    u, taps, du = u.detach(), taps.detach(), u.detach().cos()
    slope = torch.func.jvp(lambda u: filtering.evolve(u, taps, None, problem), (u,), (du,))[1]
    torch.testing.assert_close(slope, dense(du, taps, None, problem), rtol=0, atol=1e-13)


def test_vmap_equals_a_loop_and_the_operator_passes_opcheck():
    u, taps = make(REFLECT, 20, 3, 4)
    many = torch.stack((taps, 2 * taps))
    mapped = torch.func.vmap(lambda a: filtering.evolve(u, a, None, REFLECT))(many)
    looped = torch.stack([filtering.evolve(u, a, None, REFLECT) for a in many])
    torch.testing.assert_close(mapped, looped, rtol=0, atol=1e-13)
    settings = (u.requires_grad_(), taps.requires_grad_(), None, 1, "explicit", "no_flux", 1, 0)
    result = torch.library.opcheck(torch.ops.depthpde.filter.default, settings)
    assert set(result.values()) == {"SUCCESS"}


def test_what_is_no_number_stays_behind_its_wall():
    u, taps = make(REFLECT, 40, 3, 16)
    valid = cases.mask(u)
    edges = open_edges(u, valid_mask=valid)
    for beyond in (torch.nan, torch.inf):
        filled = u.masked_fill(~valid[..., None], beyond)
        got = cases.value_and_gradients(
            lambda u, a: torch.where(valid[..., None], filtering.evolve(u, a, edges, REFLECT), 0.0),
            filled, taps,
        )  # fmt: skip
        wanted = cases.value_and_gradients(
            lambda u, a: torch.where(valid[..., None], dense(u, a, edges, REFLECT), 0.0), u, taps
        )
        cases.assert_same(got, wanted, 1e-12)


def test_no_bit_depends_on_the_number_of_threads():
    u, taps = make(REFLECT, 1500, 40, 16, dtype=torch.float32)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(
                cases.value_and_gradients(
                    lambda u, a: filtering.evolve(u, a, None, REFLECT), u, taps
                )
            )
    finally:
        torch.set_num_threads(before)
    assert u.numel() > filters.TILE
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))

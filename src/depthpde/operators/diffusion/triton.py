"""The explicit and the upwind step on CUDA by Triton.

The same flux form and the same numbers (c, k) as the CPU kernels. One program updates a block of
sites and features; its neighbours' rows come from the cache, so a step reads the field once and
writes it once. The adjoint of a uniform ratio sums its products inside the program. On a machine
without a GPU the kernels run in Triton's interpreter (``TRITON_INTERPRET=1``), which the tests use.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

from depthpde.operators.boundary import Boundary, count_edges
from depthpde.operators.diffusion import stencil
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem, as_compute, is_uniform, sum_to
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

SITES, FEATURES = 32, 64


@triton.jit
def _step(
    g_ptr, u_ptr, ratio_ptr, edges_ptr, out_ptr, products_ptr,
    length, dim, num_edges, ratio_batch, ratio_edge, ratio_dim, edges_batch,
    c, k, dilation,
    HAS_EDGES: tl.constexpr, ADJOINT: tl.constexpr, UNIFORM: tl.constexpr,
    SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip  # type: ignore[no-untyped-def]
    b = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * SITES + tl.arange(0, SITES)
    d = tl.program_id(2) * FEATURES + tl.arange(0, FEATURES)
    inside = (i < length)[:, None] & (d < dim)[None, :]
    left = (i >= dilation) & (i < length)
    right = i + dilation < length
    if HAS_EDGES:
        row = edges_ptr + b * edges_batch
        left = left & (tl.load(row + i - dilation, mask=left, other=0) != 0)
        right = right & (tl.load(row + i, mask=right, other=0) != 0)
    left = left[:, None] & inside
    right = right[:, None] & inside
    at = b * length * dim + i[:, None] * dim + d[None, :]
    here = tl.load(g_ptr + at, mask=inside, other=0.0)
    low = tl.load(g_ptr + at - dilation * dim, mask=left, other=0.0)
    high = tl.load(g_ptr + at + dilation * dim, mask=right, other=0.0)
    row = ratio_ptr + b * ratio_batch + i[:, None] * ratio_edge + d[None, :] * ratio_dim
    above = tl.load(row, mask=right, other=0.0)
    below = tl.load(row - dilation * ratio_edge, mask=left, other=0.0)
    gain = tl.where(right, high - c * here, 0.0)
    loss = tl.where(left, here - c * low, 0.0)
    tl.store(out_ptr + at, here + k * above * gain - below * loss, mask=inside)
    if ADJOINT:
        near = tl.load(u_ptr + at, mask=right, other=0.0)
        far = tl.load(u_ptr + at + dilation * dim, mask=right, other=0.0)
        products = -gain * (far - near)
        if UNIFORM:
            block = b * tl.num_programs(1) + tl.program_id(1)
            tl.store(products_ptr + block * dim + d, tl.sum(products, axis=0), mask=d < dim)
        else:
            edge = b * num_edges * dim + i[:, None] * dim + d[None, :]
            tl.store(products_ptr + edge, products, mask=(i < num_edges)[:, None] & inside)


def _check(u: Field, problem: Problem) -> None:
    on_device = u.device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    on_chain = problem.boundary is Boundary.NO_FLUX
    if not (on_device and on_chain and problem.scheme in (Scheme.EXPLICIT, Scheme.UPWIND)):
        does = "the explicit and the upwind scheme with no-flux ends on CUDA"
        raise problem.refusal("triton", does, u.device)


def _launch(
    g: Field,
    u: Field | None,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    kind: tuple[float, float],
) -> tuple[Field, Tensor | None]:
    """Take one step of g, and with u also give the products of every edge (or their sums)."""
    batch, length, dim = g.shape
    out, uniform = torch.empty_like(g), is_uniform(ratio)
    num_edges = count_edges(length, problem.boundary, problem.dilation)
    programs = (batch, triton.cdiv(length, SITES), triton.cdiv(dim, FEATURES))
    products = None
    if u is not None:
        products = g.new_zeros(batch, programs[1] if uniform else num_edges, dim)
    strides = [
        0 if size == 1 else step for size, step in zip(ratio.shape, ratio.stride(), strict=True)
    ]
    opened = g if edges is None else edges.contiguous().view(torch.uint8)
    _step[programs](
        g, g if u is None else u, ratio, opened, out, out if products is None else products,
        length, dim, num_edges, *strides,
        0 if edges is None or edges.shape[0] == 1 else num_edges,
        *kind, problem.dilation,
        HAS_EDGES=edges is not None, ADJOINT=u is not None, UNIFORM=uniform,
        SITES=SITES, FEATURES=FEATURES,
    )  # fmt: skip
    return out, products


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    _check(u, problem)
    field, ratio = as_compute(u.detach().contiguous(), ratio.detach())
    kind = (1.0, 0.0) if problem.scheme is Scheme.UPWIND else (1.0, 1.0)
    for _ in range(problem.steps):
        field, _ = _launch(field, None, ratio, edges, problem, kind)
    return field.to(u.dtype)


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    _check(u, problem)
    field, weights = as_compute(u.detach().contiguous(), ratio.detach())
    grad = g.detach().to(field.dtype).contiguous()
    upwind = problem.scheme is Scheme.UPWIND
    ahead, back = ((1.0, 0.0), (0.0, 1.0)) if upwind else ((1.0, 1.0), (1.0, 1.0))
    fields = [field]
    if is_uniform(weights):
        for _ in range(problem.steps - 1):
            grad, _ = _launch(grad, None, weights, edges, problem, back)
    else:
        for _ in range(problem.steps - 1):
            fields.append(_launch(fields[-1], None, weights, edges, problem, ahead)[0])
    total = torch.zeros(ratio.shape, dtype=field.dtype, device=u.device)
    for each in reversed(fields):
        grad, products = _launch(grad, each, weights, edges, problem, back)
        assert products is not None
        total += sum_to(products, ratio.shape)
    if is_uniform(weights):
        total *= problem.steps
    return grad.to(u.dtype), total.to(ratio.dtype)


evolve = build("diffuse_triton", _evolve, _adjoint, stencil.evolve)

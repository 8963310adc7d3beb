"""Backward Euler and Crank–Nicolson in Triton: one launch a step; see `implicit` for the equations.

A program eliminates along one chain for a block of features and substitutes back: sites one after
the other, features side by side, so that every load is of neighbouring numbers and nothing passes
between programs. Traffic of a step: the field is read once (twice for Crank–Nicolson), the solution
and the pivots' quotients are written and read in float32, the result is written once. Loads are in
the field's precision. The products of the edges, for the ratio's gradient, are torch's.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from depthpde.operators.boundary import Boundary, count_edges
from depthpde.operators.diffusion import reference
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import Problem, accumulation_dtype, as_dtype, sum_to
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

FEATURES = 32


@triton.jit
def solve(
    y, ratio, edges, out, solution, quotients,
    length, dim, ratio_batch, ratio_edge, ratio_dim, edges_batch, theta, dilation,
    HAS_EDGES: tl.constexpr, DOUBLED: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Solve (I − θL) x = y along one chain; `out` is x, or 2x − y with DOUBLED."""
    T = solution.dtype.element_ty
    columns, task = tl.cdiv(dim, FEATURES), tl.program_id(0)
    b, phase = (task // columns // dilation).to(tl.int64), task // columns % dilation
    d = task % columns * FEATURES + tl.arange(0, FEATURES)
    inside, base = d < dim, b * length * dim + d
    row, weights = edges + b * edges_batch, ratio + b * ratio_batch + d * ratio_dim
    count = tl.cdiv(length - phase, dilation)
    quotient, x = tl.zeros([FEATURES], T), tl.zeros([FEATURES], T)
    below, left = tl.zeros([FEATURES], T), count < 0  # no site comes before the first
    for t in range(count):
        i = phase + t * dilation
        right = t + 1 < count
        if HAS_EDGES:
            right = right & (tl.load(row + i, mask=right, other=0) != 0)
        above = tl.load(weights + i * ratio_edge, mask=inside & right, other=0.0).to(T) * theta
        pivot = 1 + above + below - below * quotient
        here = tl.load(y + base + i * dim, mask=inside, other=0.0).to(T)
        x = (here + below * tl.where(left, x, 0.0)) / pivot
        quotient = above / pivot
        tl.store(solution + base + i * dim, x, mask=inside)
        tl.store(quotients + base + i * dim, quotient, mask=inside)
        below, left = above, right
    right = count < 0
    for t in range(count):
        i = phase + (count - 1 - t) * dilation
        left = t + 1 < count
        if HAS_EDGES:
            left = left & (tl.load(row + i - dilation, mask=left, other=0) != 0)
        quotient = tl.load(quotients + base + i * dim, mask=inside, other=0.0)
        before = tl.load(solution + base + i * dim, mask=inside, other=0.0)
        x = before + quotient * tl.where(right, x, 0.0)
        tl.store(solution + base + i * dim, x, mask=inside)
        result = x
        if DOUBLED:  # a site alone keeps its value, whatever it is
            here = tl.load(y + base + i * dim, mask=inside, other=0.0).to(T)
            result = tl.where(left | right, 2 * x - here, here)
        tl.store(out + base + i * dim, result.to(out.dtype.element_ty), mask=inside)
        right = left


def _solve(
    y: Field, ratio: PerEdge, edges: Edges | None, problem: Problem, dtype: torch.dtype
) -> tuple[Field, Field]:
    """Take one step, rounded to `dtype`; also give the solution in full precision."""
    batch, length, dim = y.shape
    out = torch.empty(y.shape, dtype=dtype, device=y.device)
    solution, quotients = ratio.new_empty(y.shape), ratio.new_empty(y.shape)
    strides = [
        0 if size == 1 else step for size, step in zip(ratio.shape, ratio.stride(), strict=True)
    ]
    doubled = problem.scheme is Scheme.CRANK_NICOLSON
    features = min(FEATURES, triton.next_power_of_2(dim))
    chains = batch * min(problem.dilation, length)
    solve[(chains * triton.cdiv(dim, features),)](
        y, ratio, y if edges is None else edges.contiguous().view(torch.uint8),
        out, solution, quotients, length, dim, *strides,
        0 if edges is None or edges.shape[0] == 1 else edges.shape[1],
        0.5 if doubled else 1.0, min(problem.dilation, length),
        HAS_EDGES=edges is not None, DOUBLED=doubled, FEATURES=features,
    )  # fmt: skip
    return out, solution


def _steps(
    u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem, dtype: torch.dtype
) -> tuple[Field, list[Field]]:
    """Take all steps; what is between two of them keeps full precision."""
    solutions = []
    for left in range(problem.steps, 0, -1):
        stored = dtype if left == 1 else ratio.dtype
        u, solution = _solve(u.contiguous(), ratio, edges, problem, stored)
        solutions.append(solution)
    return u, solutions


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    if count_edges(u.shape[1], Boundary.NO_FLUX, problem.dilation) == 0:
        return u
    weights = as_dtype(ratio.detach(), accumulation_dtype(u.dtype))
    return _steps(u.detach(), weights, edges, problem, u.dtype)[0]


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    if count_edges(u.shape[1], Boundary.NO_FLUX, problem.dilation) == 0:
        return g, torch.zeros_like(ratio)
    weights = as_dtype(ratio.detach(), accumulation_dtype(u.dtype))
    _, solutions = _steps(u.detach(), weights, edges, problem, weights.dtype)
    total, grad = torch.zeros_like(weights), g.detach()
    for solution in reversed(solutions):
        stored = g.dtype if solution is solutions[0] else weights.dtype
        grad, z = _solve(grad.contiguous(), weights, edges, problem, stored)
        products = _gap(z, problem.dilation) * _gap(solution, problem.dilation)
        if edges is not None:
            products = torch.where(edges[..., None], products, 0.0)
        total -= sum_to(products, ratio.shape)
    return grad, as_dtype(total, ratio.dtype)


def _gap(x: Field, dilation: int) -> Tensor:
    return x[:, dilation:] - x[:, :-dilation]


evolve = build("diffuse_implicit_triton", _evolve, _adjoint, reference.evolve)

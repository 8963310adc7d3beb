"""The explicit and the upwind step on the CPU, one pass over memory each way.

    evolve   reads u once and writes it once: one step by its stencil, several equal ones as one
             filter (`taps`); a ratio of its own at each edge, and distant neighbours, step by step
    adjoint  uniform ratio: ∂/∂r (I + rM)^s = s M (I + rM)^{s−1}, since M commutes with itself, so

        grad_u = (Dᵀ)^s g        grad_r = s ⟨Mᵀ (Dᵀ)^{s−1} g, u⟩

    needs the input alone whatever the number of steps. A ratio of its own at each edge has no such
    shortcut: the intermediate fields are recomputed, step by step.

No-flux and periodic ends; cut edges; every precision, half ones rounded once, at the store.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from depthpde.operators.boundary import Boundary, count_edges
from depthpde.operators.diffusion import filtering, stencil
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    accumulation_dtype,
    as_compute,
    as_dtype,
    is_uniform,
    sum_to,
    without_grad,
)
from depthpde.operators.diffusion.taps import heat_taps
from depthpde.operators.kernels import edge_steps, steps
from depthpde.operators.kernels.lanes import scalars, show
from depthpde.operators.kernels.steps import DOWNWIND, SYMMETRIC, UPWIND
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

LONGEST = 64
"""Steps of one filter; more are several filters, whose windows stay in the cache."""


_NO_SUMS = {np.dtype(kind): np.empty((0, 0), kind) for kind in (np.float32, np.float64)}


def supports(u: Field, problem: Problem) -> bool:
    """Tell whether this path can do the problem."""
    return (
        u.is_cpu
        and (problem.scheme is Scheme.EXPLICIT or problem.scheme is Scheme.UPWIND)
        and problem.boundary is not Boundary.FIXED
    )


def _check(u: Field, problem: Problem) -> None:
    if not supports(u, problem):
        does = "the explicit and the upwind scheme with no-flux or periodic ends on the CPU"
        raise problem.refusal("fused", does)


def run(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Take all steps, outside of autograd; the result has memory of its own."""
    _check(u, problem)
    weights = as_dtype(without_grad(ratio), accumulation_dtype(u.dtype))
    kind = UPWIND if problem.scheme is Scheme.UPWIND else SYMMETRIC
    if is_uniform(weights):
        return _run(without_grad(u), weights, edges, problem, problem.steps, kind, u.dtype)
    field, weights = as_compute(u.detach(), weights)
    return as_dtype(_run_by_edge(field, weights, edges, problem, problem.steps, kind), u.dtype)


def adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    """Give the gradients of field and ratio, outside of autograd."""
    _check(u, problem)
    dtype = accumulation_dtype(u.dtype)
    weights = as_dtype(without_grad(ratio), dtype).contiguous()
    field, grad = without_grad(u).contiguous(), without_grad(g).contiguous()
    if is_uniform(weights):
        grad_u, grad_ratio = _adjoint_uniform(grad, field, weights, edges, problem)
    else:
        grad_u, grad_ratio = _adjoint_by_edge(
            as_dtype(grad, dtype), as_dtype(field, dtype), weights, edges, problem
        )
    return as_dtype(grad_u, u.dtype), as_dtype(sum_to(grad_ratio, ratio.shape), ratio.dtype)


def _adjoint_uniform(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    kind = DOWNWIND if problem.scheme is Scheme.UPWIND else SYMMETRIC
    if problem.steps > 1:  # what is between two passes keeps full precision
        g = _run(g, ratio, edges, problem, problem.steps - 1, kind, ratio.dtype)
    batch, _, dim = u.shape
    tasks = _tasks(u)
    partial = ratio.new_empty(tasks, dim)
    out = _step(g, u, ratio.numpy(), edges, problem, kind, u.dtype, partial.numpy())
    if problem.steps > 1:
        partial *= problem.steps
    return out, partial.reshape(batch, tasks // max(batch, 1), dim)


def step_once(u: Field, ratio: NDArray[Any], edges: Edges | None, problem: Problem) -> Field:
    """Take one step, outside of autograd, with a ratio for each feature, [dim], or for all, [1]."""
    if count_edges(u.shape[1], problem.boundary, problem.dilation) == 0:
        return _copied(u, u.dtype)
    kind = UPWIND if problem.scheme is Scheme.UPWIND else SYMMETRIC
    return _step(u.contiguous(), None, ratio[None, None], edges, problem, kind, u.dtype)


def adjoint_once(
    g: Field, u: Field, ratio: NDArray[Any], edges: Edges | None, problem: Problem
) -> tuple[Field, NDArray[Any]]:
    """Give the gradients of `step_once`, outside of autograd."""
    kind = DOWNWIND if problem.scheme is Scheme.UPWIND else SYMMETRIC
    partial = np.empty((_tasks(u), u.shape[2]), ratio.dtype)
    field, grad = u.contiguous(), g.contiguous()
    out = _step(grad, field, ratio[None, None], edges, problem, kind, u.dtype, partial)
    sums = partial[0] if len(partial) == 1 else np.add.reduce(partial, axis=0)
    return out, sums if len(ratio) == len(sums) else sums.sum(keepdims=True)


def _adjoint_by_edge(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    upwind = problem.scheme is Scheme.UPWIND
    fields = [u]
    for _ in range(problem.steps - 1):
        kind = UPWIND if upwind else SYMMETRIC
        fields.append(_run_by_edge(fields[-1], ratio, edges, problem, 1, kind))
    kind = DOWNWIND if upwind else SYMMETRIC
    grad_ratio = torch.zeros(u.shape[0], *ratio.shape[1:], dtype=g.dtype, device="cpu")
    for field in reversed(fields):
        edge_steps.add_gradient(g, field, edges, grad_ratio, problem.dilation, kind[0])
        g = _run_by_edge(g, ratio, edges, problem, 1, kind)
    return g, grad_ratio


def _run(
    u: Field,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    count: int,
    kind: tuple[int, int],
    dtype: torch.dtype,
) -> Field:
    """Take some steps of one ratio: as filters where neighbours are next to each other."""
    if count_edges(u.shape[1], problem.boundary, problem.dilation) == 0:
        return _copied(u, dtype)
    u = u.contiguous()
    while count > 0:
        several = min(count, LONGEST) if problem.dilation == 1 else 1
        stored = dtype if several == count else ratio.dtype
        if several == 1:
            u = _step(u, None, ratio.contiguous().numpy(), edges, problem, kind, stored)
        elif kind == DOWNWIND:
            weights = heat_taps(ratio, several, causal=True)
            u = filtering.pull(u, None, weights, edges, problem, stored)[0]
        else:
            weights = heat_taps(ratio, several, causal=kind == UPWIND)
            u = filtering.apply(u, weights, edges, problem, stored)
        count -= several
    return u


def _step(
    g: Field,
    u: Field | None,
    ratio: NDArray[Any],
    edges: Edges | None,
    problem: Problem,
    kind: tuple[int, int],
    dtype: torch.dtype,
    partial: NDArray[Any] | None = None,
) -> Field:
    """Take one step of g; with u, also sum what it brings times u into `partial`."""
    batch, length, dim = g.shape
    tile, shown = tile_length(batch, length), show(g)
    out = torch.empty_like(g) if g.dtype is dtype else torch.empty_like(g, dtype=dtype)
    kernel = steps.step if shown.itemsize > 2 else steps.step_converted
    launch(
        kernel, batch * -(-length // tile), shown.size,
        shown, shown if u is None else show(u), ratio, edge_array(edges),
        show(out), _NO_SUMS[ratio.dtype] if partial is None else partial, (batch, length, dim),
        problem.dilation, problem.boundary is Boundary.PERIODIC,
        *scalars(ratio.dtype, *kind), tile,
    )  # fmt: skip
    return out


def _tasks(u: Field) -> int:
    batch, length, _ = u.shape
    return batch * -(-length // tile_length(batch, length))


def _copied(u: Field, dtype: torch.dtype) -> Field:
    return u.to(dtype, copy=True, memory_format=torch.contiguous_format)


def _run_by_edge(
    u: Field,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    count: int,
    kind: tuple[int, int],
) -> Field:
    """Take some steps with a ratio of its own at every edge."""
    if count_edges(u.shape[1], problem.boundary, problem.dilation) == 0:
        return _copied(u, u.dtype)
    periodic = problem.boundary is Boundary.PERIODIC
    for _ in range(count):
        u = edge_steps.take(u.contiguous(), ratio, edges, problem.dilation, periodic, kind)
    return u


evolve = build("diffuse", run, adjoint, stencil.evolve)

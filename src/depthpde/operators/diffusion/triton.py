"""The explicit and the upwind step on a GPU by Triton.

    evolve   equal steps are one filter (`taps`): one launch over the field, whatever their number
    adjoint  one launch as well: the filter's, whose sums over the sites give ∂r by the chain rule

A ratio of its own at every edge goes step by step. On a machine without a GPU the kernels run in
Triton's interpreter (``TRITON_INTERPRET=1``), as the tests do, and compile ahead of time
(``benchmarks/gpu_plan.py``).
"""

from __future__ import annotations

import os
from functools import lru_cache

import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary, count_edges
from depthpde.operators.diffusion import stencil
from depthpde.operators.diffusion.device import edge_steps, filtering
from depthpde.operators.diffusion.device.taps import make_taps, pull_taps
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    accumulation_dtype,
    as_dtype,
    is_uniform,
    sum_to,
)
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

LONGEST = 64
"""Steps of one filter; more are several."""


def _check(u: Field, problem: Problem) -> None:
    on_device = u.device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    on_chain = problem.boundary is Boundary.NO_FLUX
    if not (on_device and on_chain and problem.scheme in (Scheme.EXPLICIT, Scheme.UPWIND)):
        does = "the explicit and the upwind scheme with no-flux ends on CUDA"
        raise problem.refusal("triton", does, u.device)


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    _check(u, problem)
    if count_edges(u.shape[1], problem.boundary, problem.dilation) == 0:
        return u
    weights = as_dtype(ratio.detach(), accumulation_dtype(u.dtype))
    if not is_uniform(ratio):
        return _run_by_edge(u, weights, edges, problem)
    dtype = u.dtype
    *others, last = _portions(problem.steps)
    for several in others:
        u = filtering.apply(u, _taps(weights, several, problem), edges, problem, weights.dtype)
    return filtering.apply(u, _taps(weights, last, problem), edges, problem, dtype)


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    _check(u, problem)
    if count_edges(u.shape[1], problem.boundary, problem.dilation) == 0:
        return g, torch.zeros_like(ratio)
    weights = as_dtype(ratio.detach(), accumulation_dtype(u.dtype))
    if not is_uniform(ratio):
        grad, by_ratio = _adjoint_by_edge(g, u, weights, edges, problem)
        return grad, as_dtype(by_ratio, ratio.dtype)
    *others, last = _portions(problem.steps)
    for several in others:  # what is between two filters keeps full precision
        half = _taps(weights, several, problem)
        g = filtering.pull(g, None, half, edges, problem, weights.dtype)[0]
    grad, by_taps = filtering.pull(g, u, _taps(weights, last, problem), edges, problem, u.dtype)
    causal = problem.scheme is Scheme.UPWIND
    by_ratio = pull_taps(by_taps, weights, _one(weights.device), (last,), causal)[0]
    # every step is the same matrix: ∂(D^s)/∂r = (s / p) D^{s−p} ∂(D^p)/∂r
    return grad, as_dtype(by_ratio * (problem.steps / last), ratio.dtype)


def _portions(steps: int) -> list[int]:
    """Cut the steps into filters of at most `LONGEST`."""
    return [*[LONGEST] * ((steps - 1) // LONGEST), (steps - 1) % LONGEST + 1]


def _taps(ratio: PerEdge, steps: int, problem: Problem) -> Tensor:
    causal = problem.scheme is Scheme.UPWIND
    return make_taps(ratio, _one(ratio.device), (steps,), causal, ratio.dtype)


@lru_cache(maxsize=8)
def _one(device: torch.device) -> Tensor:
    """Give the weight of an only scale."""
    return torch.ones(1, device=device)


def _run_by_edge(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    dtype, field = u.dtype, u.detach().contiguous()
    kind = (1.0, 0.0) if problem.scheme is Scheme.UPWIND else (1.0, 1.0)
    for left in range(problem.steps, 0, -1):
        stored = dtype if left == 1 else ratio.dtype
        field, _ = edge_steps.take(field, None, ratio, edges, problem, kind, stored)
    return field


def _adjoint_by_edge(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    upwind = problem.scheme is Scheme.UPWIND
    ahead, back = ((1.0, 0.0), (0.0, 1.0)) if upwind else ((1.0, 1.0), (1.0, 1.0))
    fields, grad = [u.detach().contiguous()], g.detach().contiguous()
    for _ in range(problem.steps - 1):
        made = edge_steps.take(fields[-1], None, ratio, edges, problem, ahead, ratio.dtype)
        fields.append(made[0])
    total = torch.zeros_like(ratio)
    for field in reversed(fields):
        stored = u.dtype if field is fields[0] else ratio.dtype
        grad, products = edge_steps.take(grad, field, ratio, edges, problem, back, stored)
        assert products is not None
        total += sum_to(products, ratio.shape)
    return grad, total


evolve = build("diffuse_triton", _evolve, _adjoint, stencil.evolve)

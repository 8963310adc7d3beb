"""The explicit and the upwind step on the CPU, one pass over memory each way.

    evolve   reads u once and writes it once for every four steps (one, if fewer are left)
    adjoint  uniform ratio: ∂/∂r (I + rM)^s = s M (I + rM)^{s−1}, since M commutes with itself, so

        grad_u = (Dᵀ)^s g        grad_r = s ⟨Mᵀ (Dᵀ)^{s−1} g, u⟩

    needs the input alone whatever the number of steps. A ratio of its own at each edge has no such
    shortcut: the intermediate fields are recomputed, step by step.

No-flux and periodic ends; cut edges; float32 and float64 (half precision is summed in float32).
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.boundary import Boundary, count_edges
from depthpde.operators.diffusion import kernels, stencil
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    as_compute,
    as_dtype,
    is_uniform,
    sum_to,
)
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

_SYMMETRIC, _UPWIND, _DOWNWIND = (1, 1), (1, 0), (0, 1)


def supports(u: Field, problem: Problem) -> bool:
    """Tell whether this path can do the problem."""
    return (
        u.device.type == "cpu"
        and problem.scheme in (Scheme.EXPLICIT, Scheme.UPWIND)
        and problem.boundary is not Boundary.FIXED
    )


def _check(u: Field, problem: Problem) -> None:
    if not supports(u, problem):
        does = "the explicit and the upwind scheme with no-flux or periodic ends on the CPU"
        raise problem.refusal("fused", does)


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    _check(u, problem)
    field, ratio = as_compute(u.detach(), ratio.detach())
    kind = _UPWIND if problem.scheme is Scheme.UPWIND else _SYMMETRIC
    return as_dtype(_run(field, ratio, edges, problem, problem.steps, kind), u.dtype)


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    _check(u, problem)
    field, weights = as_compute(u.detach(), ratio.detach())
    grad = as_dtype(g.detach(), field.dtype).contiguous()
    uniform = _adjoint_uniform if is_uniform(weights) else _adjoint_by_edge
    grad_u, grad_ratio = uniform(grad, field.contiguous(), weights, edges, problem)
    return as_dtype(grad_u, u.dtype), as_dtype(sum_to(grad_ratio, ratio.shape), ratio.dtype)


def _adjoint_uniform(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    kind = _DOWNWIND if problem.scheme is Scheme.UPWIND else _SYMMETRIC
    g = _run(g, ratio, edges, problem, problem.steps - 1, kind)
    batch, length, dim = u.shape
    tile = kernels.tile_length(batch, length)
    out = torch.empty_like(g)
    partial = torch.empty(batch, -(-length // tile), dim, dtype=g.dtype)
    periodic = problem.boundary is Boundary.PERIODIC
    kernels.launch(
        kernels.step_adjoint,
        *kernels.arrays(g, u, ratio.contiguous()), kernels.edge_array(edges),
        *kernels.arrays(out, partial),
        problem.dilation, periodic, *_pair(g, kind), kernels.scalar(g, problem.steps), tile,
    )  # fmt: skip
    return out, partial


def _adjoint_by_edge(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, Tensor]:
    upwind = problem.scheme is Scheme.UPWIND
    fields = [u]
    for _ in range(problem.steps - 1):
        kind = _UPWIND if upwind else _SYMMETRIC
        fields.append(_run(fields[-1], ratio, edges, problem, 1, kind))
    kind = _DOWNWIND if upwind else _SYMMETRIC
    grad_ratio = torch.zeros(u.shape[0], *ratio.shape[1:], dtype=g.dtype)
    for field in reversed(fields):
        kernels.launch(
            kernels.edge_gradient,
            *kernels.arrays(g, field), kernels.edge_array(edges), *kernels.arrays(grad_ratio),
            problem.dilation, kernels.scalar(g, kind[0]),
        )  # fmt: skip
        g = _run(g, ratio, edges, problem, 1, kind)
    return g, grad_ratio


def _run(
    u: Field,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    steps: int,
    kind: tuple[int, int],
) -> Field:
    """Take some steps: four at a time where that is possible, else one by one."""
    batch, length, _ = u.shape
    if count_edges(length, problem.boundary, problem.dilation) == 0:
        return u.contiguous()
    u, ratio = u.contiguous(), ratio.contiguous()
    uniform, opened = is_uniform(ratio), kernels.edge_array(edges)
    periodic = problem.boundary is Boundary.PERIODIC
    may_leap = uniform and kind == _SYMMETRIC and problem.dilation == 1 and not periodic
    tile = kernels.tile_length(batch, length)
    one_step = kernels.step if uniform else kernels.step_by_edge
    while steps > 0:
        out = torch.empty_like(u)
        if may_leap and steps >= kernels.LEAP:
            kernels.launch(
                kernels.four_steps, *kernels.arrays(u, ratio), opened, *kernels.arrays(out), tile
            )
            steps -= kernels.LEAP
        else:
            kernels.launch(
                one_step,
                *kernels.arrays(u, ratio), opened, *kernels.arrays(out),
                problem.dilation, periodic, *_pair(u, kind), tile,
            )  # fmt: skip
            steps -= 1
        u = out
    return u


def _pair(u: Field, kind: tuple[int, int]) -> tuple[object, object]:
    return kernels.scalar(u, kind[0]), kernels.scalar(u, kind[1])


evolve = build("diffuse", _evolve, _adjoint, stencil.evolve)

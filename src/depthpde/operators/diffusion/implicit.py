"""Backward Euler and Crank–Nicolson by a tridiagonal solve.

    backward Euler     x = (I − L_r)⁻¹ u
    Crank–Nicolson     x = 2 (I − ½ L_r)⁻¹ u − u        (the same as (I − ½L_r)⁻¹ (I + ½L_r) u)

Stable for every ratio. Adjoint: the matrix is symmetric, so the adjoint solve is the same solve,

    z = (I − θL_r)⁻¹ g        ∂/∂r_e = −(z_j − z_i)(y_j − y_i),    y the solution of the step

The solutions of the steps are recomputed in the backward, which keeps the input alone. Cost: O(n)
a step; reads the field once, writes it twice, and one scratch row block a thread. No-flux ends and
cut edges, any ratio. Second derivatives and forward mode go through the dense reference. CPU:
numba; GPU: Triton (`device/implicit`).
"""

from __future__ import annotations

import numpy as np
import torch

from depthpde.operators.boundary import Boundary, count_edges, is_alone
from depthpde.operators.diffusion import reference
from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    as_compute,
    device_module,
    on_gpu,
    sum_to,
)
from depthpde.operators.kernels import edge_steps
from depthpde.operators.kernels.compilation import kernel
from depthpde.operators.kernels.lanes import scalars
from depthpde.operators.kernels.threads import edge_array, launch
from depthpde.operators.kernels.walls import is_open, row_of
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

BLOCK = 64  # features eliminated together


def is_on_chain(problem: Problem) -> bool:
    """Tell whether one step is a tridiagonal solve."""
    implicit = problem.scheme in (Scheme.BACKWARD_EULER, Scheme.CRANK_NICOLSON)
    return implicit and problem.boundary is Boundary.NO_FLUX


@kernel
def solve(y, ratio, edges, out, theta, dilation, first_task, last_task):  # type: ignore[no-untyped-def]
    """Solve (I − θL) x = y along every chain by elimination and back-substitution."""
    _, length, dim = y.shape
    blocks = (dim + BLOCK - 1) // BLOCK
    by_edge = ratio.shape[1] > 1
    for task in range(first_task, last_task):
        b, first = task // blocks, (task % blocks) * BLOCK
        width = min(BLOCK, dim - first)
        carry = np.zeros((length, BLOCK), y.dtype)
        below, above = np.zeros(BLOCK, y.dtype), np.zeros(BLOCK, y.dtype)
        row_edges = row_of(edges, b)
        for i in range(length):
            is_left = i >= dilation and is_open(edges, row_edges, i - dilation)
            is_right = i + dilation < length and is_open(edges, row_edges, i)
            for d in range(width):
                rd = (first + d) % ratio.shape[2]
                rb = b % ratio.shape[0]
                below[d] = theta * ratio[rb, i - dilation if by_edge else 0, rd] if is_left else 0
                above[d] = theta * ratio[rb, i if by_edge else 0, rd] if is_right else 0
            row = max(i - dilation, 0)
            for d in range(width):
                pivot = 1 + above[d] + below[d] - below[d] * carry[row, d]
                carry[i, d] = above[d] / pivot
                behind = below[d] * out[b, row, first + d] if is_left else below[d] * 0
                out[b, i, first + d] = (y[b, i, first + d] + behind) / pivot
        for i in range(length - 1 - dilation, -1, -1):
            if is_open(edges, row_edges, i):
                for d in range(width):
                    out[b, i, first + d] += carry[i, d] * out[b, i + dilation, first + d]


def _solve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    theta = 1.0 if problem.scheme is Scheme.BACKWARD_EULER else 0.5
    out = torch.empty_like(u)
    launch(
        solve, u.shape[0] * -(-u.shape[2] // BLOCK), u.numel(),
        u.numpy(), ratio.numpy(), edge_array(edges), out.numpy(),
        *scalars(out.numpy().dtype, theta), problem.dilation,
    )  # fmt: skip
    return out


def _finish(solution: Field, before: Field, edges: Edges | None, problem: Problem) -> Field:
    if problem.scheme is Scheme.BACKWARD_EULER:
        return solution
    after = 2 * solution - before
    if edges is None:
        return after
    alone = is_alone(edges, before.shape[1], problem.dilation)  # infinite padding stays itself
    return torch.where(alone, before, after)


def _check(u: Field, problem: Problem) -> None:
    if not (u.is_cpu and is_on_chain(problem)):
        does = "backward Euler and Crank–Nicolson with no-flux ends on the CPU or CUDA"
        raise problem.refusal("implicit", does)


def _solutions(
    u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, list[Field]]:
    solutions = []
    for _ in range(problem.steps):
        solutions.append(_solve(u, ratio, edges, problem))
        u = _finish(solutions[-1], u, edges, problem)
    return u, solutions


def _evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    _check(u, problem)
    field, ratio = as_compute(u.detach(), ratio.detach())
    for _ in range(problem.steps):
        solution = _solve(field.contiguous(), ratio.contiguous(), edges, problem)
        field = _finish(solution, field, edges, problem)
    return field.to(u.dtype)


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    _check(u, problem)
    field, weights = as_compute(u.detach(), ratio.detach().contiguous())
    grad = g.detach().to(field.dtype).contiguous()
    num_edges = count_edges(u.shape[1], problem.boundary, problem.dilation)
    grad_ratio = torch.zeros(u.shape[0], num_edges, ratio.shape[2], dtype=field.dtype, device="cpu")
    _, solutions = _solutions(field.contiguous(), weights, edges, problem)
    for solution in reversed(solutions):
        z = _solve(grad, weights, edges, problem)
        edge_steps.add_gradient(z, solution, edges, grad_ratio, problem.dilation, 1.0)
        grad = _finish(z, grad, edges, problem)
    return grad.to(u.dtype), sum_to(grad_ratio, ratio.shape).to(ratio.dtype)


_on_cpu = build("diffuse_implicit", _evolve, _adjoint, reference.evolve)


def evolve(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Take the steps by a solve on this field's device."""
    path = device_module("implicit").evolve if on_gpu(u) and is_on_chain(problem) else _on_cpu
    return path(u, ratio, edges, problem)

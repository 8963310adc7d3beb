"""The exponential average along the sequence: a first-order scan, one pass over memory each way.

    S_i = u_i + q S_{i−1}    C_i = 1 + q C_{i−1}    y_i = S_i / C_i        S = u, C = 1 after a wall

and, unless causal, the mean of this and of the same from the other end. Adjoint, with
a_i = g_i / C_i and b_i = −a_i y_i:

    p_i = a_i + q p_{i+1}    c_i = b_i + q c_{i+1}    ∂u = p    ∂q = Σ_i (p_i S_{i−1} + c_i C_{i−1})

Cost on the CPU: a block of features of one sequence is scanned up and down while it is in the
cache, so the field is read once and written once (backward: two reads, one write); sums are kept in
float32 or wider and rounded once. Elsewhere, and inside torch's transforms, by doubling.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from depthpde.operators.diffusion.operator import build
from depthpde.operators.diffusion.problem import (
    Problem,
    accumulation_dtype,
    as_compute,
    as_dtype,
    sum_to,
    without_grad,
)
from depthpde.operators.kernels.compilation import inline, kernel
from depthpde.operators.kernels.lanes import (
    aligned,
    fma,
    load,
    minus,
    over,
    plus,
    show,
    spread,
    store,
    times,
    width,
)
from depthpde.operators.kernels.rows import bring, send
from depthpde.operators.kernels.threads import edge_array, launch
from depthpde.operators.kernels.walls import is_open, row_of
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

BLOCK = 32  # features scanned together: whole cache lines in every precision


def exponential_average(u: Field, memory: Tensor, edges: Edges | None, *, causal: bool) -> Field:
    """Average every feature over its past, and over its future unless causal.

    Args:
        u: The field.
        memory: q of every feature, [dim], between 0 and 1.
        edges: True where an edge is open; None for all.
        causal: Never show a site its future.
    """
    problem = Problem(scheme=Scheme.UPWIND if causal else Scheme.EXPLICIT)
    return (evolve if u.is_cpu else composite)(u, memory[None, None], edges, problem)


def composite(u: Field, memory: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    """Average with torch operations."""
    field, q = as_compute(u, memory)  # the sums outgrow half precision
    past = _doubled(field, q, edges)
    if problem.scheme is Scheme.UPWIND:
        return as_dtype(past, u.dtype)
    mirrored = None if edges is None else edges.flip(1)
    future = _doubled(field.flip(1), q, mirrored).flip(1)
    return as_dtype((past + future) / 2, u.dtype)


def _doubled(u: Field, memory: PerEdge, edges: Edges | None) -> Field:
    """Average over the past by doubling: log₂ n passes, each reaching twice as far.

    S_i ← S_i + q^d S_{i−d},    d = 1, 2, 4 …    where no wall stands between i − d and i
    """
    length = u.shape[1]
    total, count = u, torch.ones_like(u)
    if edges is None:
        edges = torch.ones(1, length - 1, dtype=torch.bool, device=u.device)
    joined = F.pad(edges, (1, 0))  # joined_i: no wall within the last d sites before i
    gap = 1
    while gap < length:
        reach = (joined[:, gap:, None] * memory**gap).to(u.dtype)
        before = torch.where(joined[:, gap:, None], total[:, :-gap], 0.0)
        total = torch.cat((total[:, :gap], total[:, gap:] + reach * before), dim=1)
        count = torch.cat((count[:, :gap], count[:, gap:] + reach * count[:, :-gap]), dim=1)
        joined = torch.cat((joined[:, :gap] & False, joined[:, gap:] & joined[:, :-gap]), dim=1)
        gap *= 2
    return total / count


@inline
def _copy(source, at, out, to):  # type: ignore[no-untyped-def]
    """Copy one line."""
    for d in range(0, BLOCK, width(out)):
        store(out, to + d, load(source, at + d))


@inline
def _advance(line, q, s, c, joined):  # type: ignore[no-untyped-def]
    """Go on by one site: S ← u + q S, C ← 1 + q C, or S ← u, C ← 1 behind a wall."""
    ones = spread(q, q.dtype.type(1))
    if not joined:  # what stands beyond a wall may be no number: it is not even multiplied
        s[:] = 0
        c[:] = 0
    for d in range(0, BLOCK, width(q)):
        keep = load(q, d)
        store(s, d, fma(keep, load(s, d), load(line, d)))
        store(c, d, fma(keep, load(c, d), ones))


@kernel
def average(u, memory, edges, out, shape, both, first, last):  # type: ignore[no-untyped-def]
    """Average a field; a task is one block of features of one sequence."""
    _, length, dim = shape
    blocks, half = (dim + BLOCK - 1) // BLOCK, memory.dtype.type(0.5)
    q, s, c = aligned(BLOCK, memory), aligned(BLOCK, memory), aligned(BLOCK, memory)
    line, past = aligned(BLOCK, memory), aligned(length * BLOCK if both else 0, memory)
    for task in range(first, last):
        b, skip = task // blocks, task % blocks * BLOCK
        n, row, base = min(BLOCK, dim - skip), row_of(edges, b), b * length * dim + skip
        for d in range(BLOCK):
            q[d] = memory[b if memory.shape[0] > 1 else 0, 0, skip + d] if d < n else half
        for i in range(length):
            bring(u, base + i * dim, n, line, 0)
            _advance(line, q, s, c, i > 0 and is_open(edges, row, i - 1))
            for d in range(0, BLOCK, width(q)):
                store(line, d, over(load(s, d), load(c, d)))
            if both:
                _copy(line, 0, past, i * BLOCK)
            else:
                send(line, out, base + i * dim, n)
        for i in range(length - 1 if both else -1, -1, -1):
            bring(u, base + i * dim, n, line, 0)
            _advance(line, q, s, c, i + 1 < length and is_open(edges, row, i))
            for d in range(0, BLOCK, width(q)):
                pair = plus(load(past, i * BLOCK + d), over(load(s, d), load(c, d)))
                store(line, d, times(spread(q, half), pair))
            send(line, out, base + i * dim, n)


@inline
def _pull(line, q, p, c, sums, total, count, here, other, part, follows, draws):  # type: ignore[no-untyped-def]
    """Go on by one site with p and c, and add to ∂q; rows `here` and `other` hold S and C.

    `follows`: no wall stands between this site and the one before in the order of the adjoint;
    `draws`: none between this site and the other, from which its sums were made.
    """
    ones, parts = spread(q, q.dtype.type(1)), spread(q, part)
    if not follows:
        p[:] = 0
        c[:] = 0
    for d in range(0, BLOCK, width(q)):
        keep, inverse = load(q, d), over(ones, load(count, here + d))
        a = times(times(parts, load(line, d)), inverse)
        pull = fma(keep, load(p, d), a)
        fall = times(a, times(load(total, here + d), inverse))
        fall = minus(times(keep, load(c, d)), fall)
        store(p, d, pull)
        store(c, d, fall)
        if draws:
            found = fma(fall, load(count, other + d), load(sums, d))
            store(sums, d, fma(pull, load(total, other + d), found))


@kernel
def average_adjoint(  # type: ignore[no-untyped-def]
    g, u, memory, edges, out, partial, shape, both, first, last
):
    """Give the gradient of the field, and that of q summed over each sequence."""
    _, length, dim = shape
    blocks, part = (dim + BLOCK - 1) // BLOCK, memory.dtype.type(0.5 if both else 1.0)
    q, s, c = aligned(BLOCK, memory), aligned(BLOCK, memory), aligned(BLOCK, memory)
    p, e, sums = aligned(BLOCK, memory), aligned(BLOCK, memory), aligned(BLOCK, memory)
    line, from_past = aligned(BLOCK, memory), aligned(length * BLOCK if both else 0, memory)
    total, count = aligned((length + 1) * BLOCK, memory), aligned((length + 1) * BLOCK, memory)
    for task in range(first, last):
        b, skip = task // blocks, task % blocks * BLOCK
        n, row, base = min(BLOCK, dim - skip), row_of(edges, b), b * length * dim + skip
        for d in range(BLOCK):
            q[d] = memory[b if memory.shape[0] > 1 else 0, 0, skip + d] if d < n else part
        sums[:] = 0
        for i in range(length):
            bring(u, base + i * dim, n, line, 0)
            _advance(line, q, s, c, i > 0 and is_open(edges, row, i - 1))
            _copy(s, 0, total, i * BLOCK)
            _copy(c, 0, count, i * BLOCK)
        for i in range(length - 1, -1, -1):
            here, at = i * BLOCK, base + i * dim
            ahead = i + 1 < length and is_open(edges, row, i)
            behind = i > 0 and is_open(edges, row, i - 1)
            bring(g, at, n, line, 0)
            _pull(line, q, p, e, sums, total, count, here, here - BLOCK, part, ahead, behind)
            if not both:
                send(p, out, at, n)
                continue
            _copy(p, 0, from_past, here)
            bring(u, at, n, line, 0)
            _advance(line, q, s, c, ahead)  # the other direction's sums take their place
            _copy(s, 0, total, here)
            _copy(c, 0, count, here)
        for i in range(length if both else 0):
            here, at = i * BLOCK, base + i * dim
            ahead = i + 1 < length and is_open(edges, row, i)
            behind = i > 0 and is_open(edges, row, i - 1)
            bring(g, at, n, line, 0)
            _pull(line, q, p, e, sums, total, count, here, here + BLOCK, part, behind, ahead)
            for d in range(0, BLOCK, width(q)):
                store(line, d, plus(load(p, d), load(from_past, here + d)))
            send(line, out, at, n)
        for d in range(n):
            partial[b, skip + d] = sums[d]


def _tasks(u: Field) -> int:
    return u.shape[0] * -(-u.shape[2] // BLOCK)


def _evolve(u: Field, memory: PerEdge, edges: Edges | None, problem: Problem) -> Field:
    field, q = without_grad(u).contiguous(), _ready(memory, u)
    out = torch.empty_like(field)
    launch(
        average, _tasks(u), u.numel(),
        show(field), q.numpy(), edge_array(edges), show(out), tuple(u.shape),
        problem.scheme is not Scheme.UPWIND,
    )  # fmt: skip
    return out


def _adjoint(
    g: Field, u: Field, memory: PerEdge, edges: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    grad, field = without_grad(g).contiguous(), without_grad(u).contiguous()
    q, out = _ready(memory, u), torch.empty_like(grad)
    partial = q.new_empty(u.shape[0], u.shape[2])
    launch(
        average_adjoint, _tasks(u), u.numel(),
        show(grad), show(field), q.numpy(), edge_array(edges), show(out), partial.numpy(),
        tuple(u.shape), problem.scheme is not Scheme.UPWIND,
    )  # fmt: skip
    return out, as_dtype(sum_to(partial[:, None], memory.shape), memory.dtype)


def _ready(memory: PerEdge, u: Field) -> Tensor:
    return as_dtype(without_grad(memory), accumulation_dtype(u.dtype)).contiguous()


evolve = build("exponential_average", _evolve, _adjoint, composite)

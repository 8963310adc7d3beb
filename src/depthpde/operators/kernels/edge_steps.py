"""One step whose ratio is its own at every edge, and that ratio's gradient, on the CPU.

    u_i ← u_i + k r_{i+½} (u_{i+1} − c u_i) − r_{i−½} (u_i − c u_{i−1})        (c, k as in `steps`)
    ∂r_e = −(g_j − c g_i)(u_j − u_i),    e = (i, j)

Cost: the field and the ratios are read once, the result is written once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.operators.kernels.compilation import kernel, sum_kernel
from depthpde.operators.kernels.lanes import scalars
from depthpde.operators.kernels.threads import edge_array, launch, tile_length
from depthpde.operators.kernels.walls import is_open, row_of, sides
from depthpde.shapes import Edges, Field, PerEdge


def take(
    u: Field,
    ratio: PerEdge,
    edges: Edges | None,
    dilation: int,
    periodic: bool,
    kind: tuple[int, int],
) -> Field:
    """Take one step of a contiguous field in the precision of computation."""
    out, tile = torch.empty_like(u), tile_length(u.shape[0], u.shape[1])
    launch(
        step_by_edge, u.shape[0] * -(-u.shape[1] // tile), u.numel(),
        u.numpy(), ratio.contiguous().numpy(), edge_array(edges), out.numpy(),
        dilation, periodic, *scalars(out.numpy().dtype, *kind), tile,
    )  # fmt: skip
    return out


def add_gradient(
    g: Field, u: Field, edges: Edges | None, total: Tensor, dilation: int, c: float
) -> None:
    """Add the gradient of every edge's ratio to `total`, [batch, edges, dim | 1]."""
    launch(
        edge_gradient, g.shape[0], g.numel(),
        g.numpy(), u.numpy(), edge_array(edges), total.numpy(), dilation,
        *scalars(total.numpy().dtype, c),
    )  # fmt: skip


@kernel
def step_by_edge(u, ratio, edges, out, dilation, periodic, c, k, tile, first, last):  # type: ignore[no-untyped-def]
    """Take one step with a ratio of its own at every edge."""
    _, length, dim = u.shape
    tiles = (length + tile - 1) // tile
    shared = ratio.shape[2] == 1
    for task in range(first, last):
        b, start = task // tiles, (task % tiles) * tile
        rb, row = b if ratio.shape[0] > 1 else 0, row_of(edges, b)
        for i in range(start, min(length, start + tile)):
            below, above, left, right = sides(i, length, dilation, periodic, edges, row)
            here, low, high, there = u[b, i], u[b, below], u[b, above], out[b, i]
            lower = ratio[rb, below if left else 0]
            upper = ratio[rb, i if right else 0]
            if shared:
                down = lower[0] if left else k * 0
                up = k * upper[0] if right else k * 0
                if left and right:
                    for d in range(dim):
                        there[d] = here[d] + (
                            up * (high[d] - c * here[d]) - down * (here[d] - c * low[d])
                        )
                    continue
                for d in range(dim):
                    gain = up * (high[d] - c * here[d]) if right else k * 0
                    loss = down * (here[d] - c * low[d]) if left else k * 0
                    there[d] = here[d] + (gain - loss)
                continue
            if left and right:
                for d in range(dim):
                    gain = k * upper[d] * (high[d] - c * here[d])
                    there[d] = here[d] + (gain - lower[d] * (here[d] - c * low[d]))
                continue
            for d in range(dim):
                gain = k * upper[d] * (high[d] - c * here[d]) if right else k * 0
                loss = lower[d] * (here[d] - c * low[d]) if left else k * 0
                there[d] = here[d] + (gain - loss)


@sum_kernel
def edge_gradient(g, u, edges, out, dilation, c, first, last):  # type: ignore[no-untyped-def]
    """Add −(g_j − c g_i)(u_j − u_i) to every edge, summed over features if `out` has only one."""
    _, length, dim = g.shape
    num_edges = out.shape[1]
    shared = out.shape[2] == 1
    for b in range(first, last):
        row = row_of(edges, b)
        for e in range(num_edges):
            if not is_open(edges, row, e):
                continue
            far = (e + dilation) % length
            g0, g1, u0, u1, there = g[b, e], g[b, far], u[b, e], u[b, far], out[b, e]
            if shared:
                total = c * 0
                for d in range(dim):
                    total += (g1[d] - c * g0[d]) * (u1[d] - u0[d])
                there[0] -= total
            else:
                for d in range(dim):
                    there[d] -= (g1[d] - c * g0[d]) * (u1[d] - u0[d])

"""One step in Triton with a ratio of its own at every edge.

    f_e = r_e (u_j − c u_i),    u_i ← u_i + k f_{i+½} − f_{i−½}        c, k: see `kernels/steps`

One launch a step: it reads the field once and writes it once, and its adjoint reads both fields,
writes one and the product of every edge. Loads are in the field's precision, sums in float32; what
stands between two steps is float32.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from depthpde.operators.boundary import count_edges
from depthpde.operators.diffusion.problem import Problem
from depthpde.shapes import Edges, Field, PerEdge

SITES, FEATURES = 32, 64


@triton.jit
def step(
    g, u, ratio, edges, out, products,
    length, dim, num_edges, ratio_batch, ratio_edge, ratio_dim, edges_batch, c, k, dilation,
    HAS_EDGES: tl.constexpr, ADJOINT: tl.constexpr, SITES: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    """Take one step of g; with ADJOINT, also give every edge's product with u."""
    T = ratio.dtype.element_ty
    columns, rows, task = tl.cdiv(dim, FEATURES), tl.cdiv(length, SITES), tl.program_id(0)
    b = (task // columns // rows).to(tl.int64)
    i = task // columns % rows * SITES + tl.arange(0, SITES)
    d = task % columns * FEATURES + tl.arange(0, FEATURES)
    inside = (i < length)[:, None] & (d < dim)[None, :]
    left = (i >= dilation) & (i < length)
    right = i + dilation < length
    if HAS_EDGES:
        row = edges + b * edges_batch
        left = left & (tl.load(row + i - dilation, mask=left, other=0) != 0)
        right = right & (tl.load(row + i, mask=right, other=0) != 0)
    left, right = left[:, None] & inside, right[:, None] & inside
    at = b * length * dim + i[:, None] * dim + d[None, :]
    here = tl.load(g + at, mask=inside, other=0.0).to(T)
    low = tl.load(g + at - dilation * dim, mask=left, other=0.0).to(T)
    high = tl.load(g + at + dilation * dim, mask=right, other=0.0).to(T)
    row = ratio + b * ratio_batch + i[:, None] * ratio_edge + d[None, :] * ratio_dim
    above = tl.load(row, mask=right, other=0.0)
    below = tl.load(row - dilation * ratio_edge, mask=left, other=0.0)
    gain = tl.where(right, high - c * here, 0.0)
    loss = tl.where(left, here - c * low, 0.0)
    result = here + k * above * gain - below * loss
    tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)
    if ADJOINT:
        near = tl.load(u + at, mask=right, other=0.0).to(T)
        far = tl.load(u + at + dilation * dim, mask=right, other=0.0).to(T)
        edge = b * num_edges * dim + i[:, None] * dim + d[None, :]
        reached = (i < num_edges)[:, None] & inside
        tl.store(products + edge, -gain * (far - near), mask=reached)


def take(
    g: Field,
    u: Field | None,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    kind: tuple[float, float],
    dtype: torch.dtype,
) -> tuple[Field, Tensor | None]:
    """Take one step of g, rounded to `dtype`; with u also give the product of every edge."""
    batch, length, dim = g.shape
    out = torch.empty(g.shape, dtype=dtype, device=g.device)
    num_edges = count_edges(length, problem.boundary, problem.dilation)
    products = None if u is None else ratio.new_empty(batch, num_edges, dim)
    strides = [
        0 if size == 1 else step for size, step in zip(ratio.shape, ratio.stride(), strict=True)
    ]
    opened = g if edges is None else edges.contiguous().view(torch.uint8)
    features = min(FEATURES, triton.next_power_of_2(dim))
    step[(batch * triton.cdiv(length, SITES) * triton.cdiv(dim, features),)](
        g, g if u is None else u, ratio, opened, out, out if products is None else products,
        length, dim, num_edges, *strides,
        0 if edges is None or edges.shape[0] == 1 else num_edges,
        *kind, problem.dilation,
        HAS_EDGES=edges is not None, ADJOINT=u is not None, SITES=SITES, FEATURES=features,
    )  # fmt: skip
    return out, products

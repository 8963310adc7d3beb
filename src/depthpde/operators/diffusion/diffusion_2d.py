"""Diffusion over an image: the five-point stencil, and the exact semigroup.

    u ← u + r (u_right + u_left + u_below + u_above − 4u),    stable while r ≤ 1/4

An image is a field [batch, height·width, dim] laid out row by row. Paths: the dense reference,
plain torch, and numba on the CPU (no-flux ends, one pass over memory a step); exp(rL) factors into
rows and columns and is two passes of the spectral path. Masked sites are walls.
"""

from __future__ import annotations

import torch
from torch import Tensor

from depthpde.errors import check_field, check_grid, check_mask, check_one_of, check_positive
from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion import spectral
from depthpde.operators.diffusion.dispatch import Method, as_edges
from depthpde.operators.diffusion.guard import checked
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
    fetch,
    fma,
    get,
    load,
    minus,
    plus,
    put,
    show,
    store,
    width,
    zeros,
)
from depthpde.operators.kernels.rows import AHEAD
from depthpde.operators.kernels.threads import edge_array, launch
from depthpde.operators.kernels.walls import row_of
from depthpde.operators.laplacian import incidence_matrix, laplacian_2d
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, Mask, PerEdge, PerFeature, Segments


def diffuse_2d(
    u: Field,
    ratio: float | PerFeature,
    grid: tuple[int, int],
    *,
    steps: int = 1,
    scheme: Scheme | str = Scheme.EXPLICIT,
    boundary: Boundary | str = Boundary.NO_FLUX,
    valid_mask: Mask | None = None,
    method: Method | str = Method.AUTO,
) -> Field:
    """Diffuse a field over the plane.

        u_t = α (u_xx + u_yy)      →      u ← u + r Δu,    r = α dt / dx²

    Stable while 0 ≤ r ≤ 1/4; no mode changes sign while r ≤ 1/8. Backward keeps u and the ratio.

    >>> u = torch.randn(2, 16, 8)   # a grid of 4 × 4 sites, row by row
    >>> dp.diffuse_2d(u, 0.1, grid=(4, 4)).shape
    torch.Size([2, 16, 8])

    Args:
        u: The field, [batch, height·width, dim].
        ratio: r of one step: one number, or one for each feature [dim].
        grid: Height and width.
        steps: Number of steps.
        scheme: `explicit` or `exact`.
        boundary: What all four sides see.
        valid_mask: True = real site; the others are walls.
        method: `auto`, `reference`, `stencil`, `fused` or, for the exact scheme, `spectral`.
    """
    check_field("u", u)
    problem = Problem(
        steps=check_positive("steps", steps),
        scheme=check_one_of("scheme", scheme, Scheme),
        boundary=check_one_of("boundary", boundary, Boundary),
        width=check_grid("grid", grid)[1],
    )
    weights = as_edges(u, ratio, problem)
    if weights.shape[:2] != (1, 1):
        raise ValueError(
            "`ratio` must be one number or one for each feature in two dimensions, "
            f"got shape {list(weights.shape)}"
        )
    weights = checked(weights, problem.scheme, dimensions=2)
    chosen = check_one_of("method", method, Method)
    return diffuse_checked(u, weights, grid, valid_mask, problem, chosen)


def plane_of(
    u: Field, grid: tuple[int, int], segments: Segments | None, row_length: int | None
) -> tuple[int, int]:
    """Return height and width of one call's image.

    Args:
        u: The field, [batch, height·width, dim].
        grid: The size that a layer was built for.
        segments: Packed sequences, of which an image has none.
        row_length: Width of this image, if it is not the one that the layer was built for.
    """
    if segments is not None:
        raise ValueError("`segments` must be left out over a grid, got some; use valid_mask")
    return grid if row_length is None else (u.shape[1] // row_length, row_length)


def diffuse_checked(
    u: Field,
    ratio: PerEdge,
    grid: tuple[int, int],
    valid_mask: Mask | None,
    problem: Problem,
    method: Method = Method.AUTO,
) -> Field:
    """Diffuse over the plane with a ratio that is known to be good."""
    height, width = grid
    if height * width != u.shape[1]:
        raise ValueError(
            f"`grid` must have as many sites as the field, {u.shape[1]}, got {height} × {width} = "
            f"{height * width}; pad the image or pass its true height and width"
        )
    if problem.scheme not in (Scheme.EXPLICIT, Scheme.EXACT):
        raise ValueError(
            "`scheme` must be 'explicit' or 'exact' in two dimensions, "
            f"got {problem.scheme.value!r}"
        )
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, u)
        if problem.boundary is not Boundary.NO_FLUX or problem.scheme is Scheme.EXACT:
            raise ValueError(
                "`valid_mask` needs the explicit scheme with no-flux ends in two dimensions, got "
                f"{problem.scheme.value!r} with {problem.boundary.value!r} ends"
            )
    return evolve_2d(u, ratio, valid_mask, problem, method)


def evolve_2d(
    u: Field,
    ratio: PerEdge,
    valid_mask: Mask | None,
    problem: Problem,
    method: Method = Method.AUTO,
) -> Field:
    """Diffuse over the plane without checks, for layers."""
    if method is Method.AUTO:
        method = choose_2d(u, problem)
    if method is Method.REFERENCE:
        return reference(u, ratio, valid_mask, problem)
    if method is Method.STENCIL and problem.scheme is Scheme.EXPLICIT:
        return stencil(u, ratio, valid_mask, problem)
    if method is Method.FUSED and choose_2d(u, problem) is Method.FUSED:
        return fused(u, ratio, valid_mask, problem)
    if method is Method.SPECTRAL and problem.scheme is Scheme.EXACT:
        return exact(u, ratio, problem)
    raise problem.refusal(method.value, "only its own schemes and ends in two dimensions")


def choose_2d(u: Field, problem: Problem) -> Method:
    """Say which path `Method.AUTO` takes."""
    if problem.scheme is Scheme.EXACT:
        return Method.SPECTRAL
    on_cpu = u.device.type == "cpu" and problem.boundary is Boundary.NO_FLUX
    return Method.FUSED if on_cpu and not torch.compiler.is_exporting() else Method.STENCIL


def reference(u: Field, ratio: PerEdge, valid_mask: Mask | None, problem: Problem) -> Field:
    """Diffuse by the dense matrix of one step, assembled edge by edge."""
    field, ratio = as_compute(u, ratio)
    length, width = u.shape[1], problem.width
    rows = incidence_matrix(width, problem.boundary).to(field)
    columns = incidence_matrix(length // width, problem.boundary).to(field)
    eye = torch.eye(length // width).to(field), torch.eye(width).to(field)
    incidence = torch.cat((torch.kron(eye[0], rows), torch.kron(columns, eye[1])))
    opened = torch.ones(1, incidence.shape[0]).to(field)
    if valid_mask is not None:
        opened = (valid_mask.to(field) @ incidence.abs().mT == 2).to(field)
    generator = -incidence.mT @ (opened[..., None] * incidence)
    generator = ratio.mT[..., None] * generator[:, None]
    if problem.scheme is Scheme.EXACT:
        matrix = torch.linalg.matrix_exp(generator)
    else:
        matrix = torch.eye(length).to(field) + generator
    matrix = torch.linalg.matrix_power(matrix, problem.steps)
    return (matrix @ field.mT[..., None])[..., 0].mT.to(u.dtype)


def stencil(u: Field, ratio: PerEdge, valid_mask: Mask | None, problem: Problem) -> Field:
    """Diffuse by repeated five-point stencils in plain torch."""
    field, ratio = as_compute(u, ratio)
    grid = (u.shape[1] // problem.width, problem.width)
    edges = None
    if valid_mask is not None:
        in_rows = valid_mask.reshape(-1, problem.width)
        down = valid_mask[:, problem.width :] & valid_mask[:, : -problem.width]
        edges = (in_rows[:, 1:] & in_rows[:, :-1], down)
    for _ in range(problem.steps):
        field = field + ratio * laplacian_2d(field, grid, boundary=problem.boundary, edges=edges)
    return field.to(u.dtype)


def exact(u: Field, ratio: PerEdge, problem: Problem) -> Field:
    """Diffuse by the exact semigroup, first along the rows, then down the columns.

    exp(rL) = exp(rL_rows) exp(rL_columns): the two commute
    """
    batch, length, dim = u.shape
    height, width = length // problem.width, problem.width
    along = Problem(steps=problem.steps, scheme=Scheme.EXACT, boundary=problem.boundary)
    rows = spectral.evolve(u.reshape(batch * height, width, dim), ratio, None, along)
    columns = rows.reshape(batch, height, width, dim).transpose(1, 2)
    columns = spectral.evolve(columns.reshape(batch * width, height, dim), ratio, None, along)
    return columns.reshape(batch, width, height, dim).transpose(1, 2).reshape(u.shape)


@inline
def _site(g, u, out, r, sums, at, dim, down, near, summing):  # type: ignore[no-untyped-def]
    """Take one step of a site; `near` says which edges are open: right, left, below, above."""
    lanes = width(g)
    if near[0] and near[1] and near[2] and near[3]:
        for d in range(at, at + dim - lanes + 1, lanes):
            fetch(g, d + down + AHEAD)
            fetch(out, d + AHEAD)
            if summing:
                fetch(u, d + AHEAD)
            x = load(g, d)
            row = minus(minus(load(g, d + dim), x), minus(x, load(g, d - dim)))
            column = minus(minus(load(g, d + down), x), minus(x, load(g, d - down)))
            change = plus(row, column)
            store(out, d, fma(load(r, d - at), change, x))
            if summing:
                store(sums, d - at, fma(change, load(u, d), load(sums, d - at)))
    else:  # what stands beyond a wall may be no number: it is not even multiplied by zero
        for d in range(at, at + dim - lanes + 1, lanes):
            x, change = load(g, d), zeros(g)
            for side in range(4):
                if near[side]:
                    step = (dim, -dim, down, -down)[side]
                    change = plus(change, minus(load(g, d + step), x))
            store(out, d, fma(load(r, d - at), change, x))
            if summing:
                store(sums, d - at, fma(change, load(u, d), load(sums, d - at)))
    for d in range(at + dim - dim % lanes, at + dim):
        x = get(g, d)
        change = x * 0
        for side in range(4):
            if near[side]:
                change += get(g, d + (dim, -dim, down, -down)[side]) - x
        put(out, d, x + r[d - at] * change)
        if summing:
            sums[d - at] += change * get(u, d)


@kernel
def step_2d(g, u, ratio, valid, out, partial, shape, across, first, last):  # type: ignore[no-untyped-def]
    """Take one step g ← g + rΔg; if `partial` is not empty, also sum (Δg)_i u_i over each row."""
    _, length, dim = shape
    height, masked, summing = length // across, valid.shape[0] > 0, partial.shape[0] > 0
    r, sums = aligned(dim, ratio), aligned(dim if summing else 0, ratio)
    for task in range(first, last):
        b, y = task // height, task % height
        row = row_of(valid, b)
        if task == first or y == 0:
            for d in range(dim):
                r[d] = ratio[b % ratio.shape[0], 0, d % ratio.shape[2]]
        sums[:] = 0
        for i in range(y * across, y * across + across):
            x, at = i - y * across, (b * length + i) * dim
            right, left, below, above = x + 1 < across, x > 0, y + 1 < height, y > 0
            if masked:
                own = valid[row, i] != 0
                right = right and own and valid[row, i + 1] != 0
                left = left and own and valid[row, i - 1] != 0
                below = below and own and valid[row, i + across] != 0
                above = above and own and valid[row, i - across] != 0
            if right or left or below or above:
                near = (right, left, below, above)
                _site(g, u, out, r, sums, at, dim, across * dim, near, summing)
            else:
                for d in range(at, at + dim):
                    put(out, d, get(g, d))
        if summing:
            for d in range(dim):
                partial[task, d] = sums[d]


def _step(
    g: Field,
    u: Field | None,
    ratio: Tensor,
    mask: Mask | None,
    problem: Problem,
    dtype: torch.dtype,
) -> tuple[Field, Tensor]:
    """Take one step of g; with u, also sum what it brings times u, for each row."""
    out, rows = torch.empty_like(g, dtype=dtype), g.shape[0] * (g.shape[1] // problem.width)
    partial = ratio.new_empty(0 if u is None else rows, g.shape[2])
    launch(
        step_2d, rows, g.numel(),
        show(g), show(g if u is None else u), ratio.numpy(), edge_array(mask), show(out),
        partial.numpy(), tuple(g.shape), problem.width,
    )  # fmt: skip
    return out, partial


def _evolve(u: Field, ratio: PerEdge, mask: Edges | None, problem: Problem) -> Field:
    field = without_grad(u).contiguous()
    weights = as_dtype(without_grad(ratio), accumulation_dtype(u.dtype)).contiguous()
    for left in reversed(range(problem.steps)):  # what is between two steps keeps full precision
        stored = weights.dtype if left else u.dtype
        field = _step(field, None, weights, mask, problem, stored)[0]
    return field


def _adjoint(
    g: Field, u: Field, ratio: PerEdge, mask: Edges | None, problem: Problem
) -> tuple[Field, PerEdge]:
    field, grad = without_grad(u).contiguous(), without_grad(g).contiguous()
    weights = as_dtype(without_grad(ratio), accumulation_dtype(u.dtype)).contiguous()
    for _ in range(problem.steps - 1):
        grad = _step(grad, None, weights, mask, problem, weights.dtype)[0]
    grad_u, partial = _step(grad, field, weights, mask, problem, u.dtype)
    height = u.shape[1] // problem.width
    products = partial.reshape(u.shape[0], height, u.shape[2]).mul_(problem.steps)
    return grad_u, as_dtype(sum_to(products, ratio.shape), ratio.dtype)


fused = build("diffuse_2d", _evolve, _adjoint, stencil)

"""`diffuse`: one signature for every path, and the choice among them."""

from __future__ import annotations

from enum import StrEnum

import torch
from torch import Tensor

from depthpde.errors import (
    check_field,
    check_one_of,
    check_positive,
    check_tensor,
    is_number,
    shown,
)
from depthpde.operators.boundary import Boundary, count_edges, open_edges
from depthpde.operators.diffusion import reference, stencil
from depthpde.operators.diffusion.guard import checked
from depthpde.operators.diffusion.operator import Evolve
from depthpde.operators.diffusion.problem import Problem, on_gpu
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, Mask, PerEdge, PerFeature, Segments


class Method(StrEnum):
    """Which code computes the step.

    >>> u = torch.randn(1, 8, 2)
    >>> same = torch.allclose(dp.diffuse(u, 0.25, method=dp.Method.STENCIL), dp.diffuse(u, 0.25))
    """

    AUTO = "auto"
    """The fastest that can do the problem."""
    REFERENCE = "reference"
    """The dense matrix: every case, O(n³)."""
    STENCIL = "stencil"
    """Plain torch."""
    FUSED = "fused"
    """Numba on the CPU."""
    TRITON = "triton"
    """Triton on CUDA."""
    IMPLICIT = "implicit"
    """A tridiagonal solve, for backward Euler and Crank–Nicolson."""
    SPECTRAL = "spectral"
    """The fast Fourier transform, for the exact semigroup."""


def diffuse(
    u: Field,
    ratio: float | PerFeature | PerEdge,
    *,
    steps: int = 1,
    scheme: Scheme | str = Scheme.EXPLICIT,
    boundary: Boundary | str = Boundary.NO_FLUX,
    dilation: int = 1,
    valid_mask: Mask | None = None,
    segments: Segments | None = None,
    row_length: int | None = None,
    method: Method | str = Method.AUTO,
) -> Field:
    """Diffuse a field along the sequence.

        u_t = α u_xx      →      u ← u + r Δu,    r = α dt / dx²        (the explicit scheme)

    First order in dt. Stable while 0 ≤ r ≤ 1/2; no mode changes sign while r ≤ 1/4. The mean over
    the valid sites of a sequence is conserved under no-flux and periodic ends (not by upwind).
    Backward keeps u and the ratio only, whatever the number of steps.

    >>> spike = torch.zeros(1, 5, 1)
    >>> spike[0, 2] = 1.0
    >>> dp.diffuse(spike, 0.25).flatten().tolist()
    [0.0, 0.25, 0.5, 0.25, 0.0]

    Args:
        u: The field, [batch, length, dim].
        ratio: r of one step: one number, one for each feature [dim], or one for each edge,
            [batch | 1, edges, dim | 1].
        steps: Number of steps.
        scheme: What one step does; see `Scheme`.
        boundary: What the ends see; see `Boundary`.
        dilation: Distance between the sites that exchange.
        valid_mask: True = real token; padding is a no-flux wall and keeps its values.
        segments: One number per packed sequence; different numbers do not mix.
        row_length: Width of an image laid out row by row; rows do not mix.
        method: Which code computes it; see `Method`.
    """
    check_field("u", u)
    problem = Problem(
        steps=check_positive("steps", steps),
        scheme=check_one_of("scheme", scheme, Scheme),
        boundary=check_one_of("boundary", boundary, Boundary),
        dilation=check_positive("dilation", dilation),
    )
    check_problem(problem, u)
    edges = open_edge_mask(
        u, problem, valid_mask=valid_mask, segments=segments, row_length=row_length
    )
    weights = checked(as_edges(u, ratio, problem), problem.scheme)
    return evolve(u, weights, edges, problem, check_one_of("method", method, Method))


def evolve(
    u: Field,
    ratio: PerEdge,
    edges: Edges | None,
    problem: Problem,
    method: Method = Method.AUTO,
) -> Field:
    """Diffuse without checks: for layers, whose ratio cannot leave its bound.

    Args:
        u: The field.
        ratio: [batch | 1, edges | 1, dim | 1].
        edges: True where an edge is open; None for all.
        problem: Everything else.
        method: Which code computes it.
    """
    if method is Method.AUTO:
        method = choose(u, problem)
    return _path(method)(u, ratio, edges, problem)


def choose(u: Field, problem: Problem) -> Method:
    """Say which path `Method.AUTO` takes for this field and problem."""
    if problem.scheme in (Scheme.BACKWARD_EULER, Scheme.CRANK_NICOLSON):
        solved = problem.boundary is Boundary.NO_FLUX and (u.is_cpu or on_gpu(u))
        return Method.IMPLICIT if solved else Method.REFERENCE
    if problem.scheme is Scheme.EXACT:
        return Method.SPECTRAL
    if problem.boundary is Boundary.FIXED or torch.compiler.is_exporting():
        return Method.STENCIL
    if u.device.type == "cpu":
        return Method.FUSED
    if problem.boundary is Boundary.NO_FLUX and on_gpu(u):
        return Method.TRITON
    return Method.STENCIL


def open_edge_mask(
    u: Field,
    problem: Problem,
    *,
    valid_mask: Mask | None = None,
    segments: Segments | None = None,
    row_length: int | None = None,
) -> Edges | None:
    """Tell which edges are open, for a problem whose walls are no-flux."""
    if valid_mask is None and segments is None and row_length is None:
        return None
    edges = open_edges(
        u,
        valid_mask=valid_mask,
        segments=segments,
        row_length=row_length,
        dilation=problem.dilation,
    )
    if problem.boundary is not Boundary.NO_FLUX:
        raise ValueError(
            f"`boundary` must be 'no_flux' where edges are cut, got {problem.boundary.value!r}; "
            "drop valid_mask, segments and row_length, or use no-flux ends"
        )
    return edges


def as_edges(u: Field, ratio: float | Tensor, problem: Problem) -> PerEdge:
    """Give any ratio the shape [batch | 1, edges | 1, dim | 1], or say what is wrong with it."""
    if not isinstance(ratio, Tensor):
        if isinstance(ratio, bool) or not isinstance(ratio, int | float):
            raise ValueError(
                "`ratio` must be a number or a tensor, got "
                f"{shown(ratio)}; use float(...) or torch.tensor(...)"
            )
        if isinstance(ratio, int) and not is_number(ratio):
            raise ValueError("`ratio` must be finite, got more than a float can hold; use less")
        ratio = torch.tensor(float(ratio), dtype=torch.float64, device=u.device).to(u.dtype)
    elif not check_tensor("ratio", ratio, u).is_floating_point():
        raise ValueError(
            f"`ratio` must hold floating-point numbers, got {ratio.dtype}; use .float()"
        )
    if ratio.ndim == 0:
        return ratio.reshape(1, 1, 1)
    batch, length, dim = u.shape
    if ratio.ndim == 1 and ratio.shape[0] == dim:
        return ratio.reshape(1, 1, dim)
    num_edges = count_edges(length, problem.boundary, problem.dilation)
    wanted = ((1, batch), (1, num_edges), (1, dim))
    if ratio.ndim == 3 and all(n in sizes for n, sizes in zip(ratio.shape, wanted, strict=True)):
        return ratio
    raise ValueError(
        f"`ratio` must be a number, one for each feature [{dim}], or one for each edge "
        f"[{batch} or 1, {num_edges}, {dim} or 1], got shape {list(ratio.shape)}"
    )


def check_ends(problem: Problem) -> None:
    """Refuse ends that the scheme does not have."""
    if problem.scheme is Scheme.UPWIND and problem.boundary is not Boundary.NO_FLUX:
        raise ValueError(
            "`boundary` must be 'no_flux' for the causal upwind scheme (the first site is kept), "
            f"got {problem.boundary.value!r}"
        )


def check_problem(problem: Problem, u: Field) -> None:
    """Refuse the combinations that have no meaning."""
    check_ends(problem)
    if problem.boundary is Boundary.PERIODIC and problem.dilation > u.shape[1]:
        raise ValueError(
            f"`dilation` must be at most the length {u.shape[1]} with periodic ends, "
            f"got {problem.dilation}"
        )


def _path(method: Method) -> Evolve:
    """Return the code of a method, imported when it is first used.

    Import statements, one by one: torch.compile follows them, but breaks its graph at
    ``importlib.import_module``, which a fresh process would meet in its first compiled call.
    """
    if method is Method.FUSED:
        from depthpde.operators.diffusion import fused

        return fused.evolve
    if method is Method.IMPLICIT:
        from depthpde.operators.diffusion import implicit

        return implicit.evolve
    if method is Method.SPECTRAL:
        from depthpde.operators.diffusion import spectral

        return spectral.evolve
    if method is Method.TRITON:
        from depthpde.operators.diffusion import triton

        return triton.evolve
    return reference.evolve if method is Method.REFERENCE else stencil.evolve

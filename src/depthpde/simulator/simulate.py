"""Simulate: follow an equation through depth time.

u_t = Σ_k F_k(u, t),    u(t_0) = u_0        →        u(t_0), u(t_1), …
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from depthpde.errors import check_field, check_mask, check_one_of, check_positive
from depthpde.shapes import Field, Mask
from depthpde.simulator.equation import Equation
from depthpde.simulator.integrator import Integrator, plan
from depthpde.solvers.integrate import Trajectory, blow_up_ceiling, check_times, integrate

SAME = 1e-6
"""Two times closer than this are one."""


def simulate(
    equation: Equation,
    u0: Field,
    times: Tensor | Sequence[float],
    *,
    method: Integrator | str = Integrator.STRANG,
    substeps: int = 1,
    valid_mask: Mask | None = None,
) -> Trajectory:
    """Follow an equation from its start through the times given.

        u(t + dt) ← one step of the method,    dt = (t_{k+1} − t_k) / substeps

    Of the method's order in dt. Where terms are given by layer, layer l acts for l ≤ t < l + 1,
    and a step that would cross into the next layer is cut in two. A run that blows up raises
    `BlowUpError`: when, through which term, which bound. Differentiable in the start and in
    everything that the terms depend on.

    >>> times = torch.linspace(0, 2, 11)
    >>> path = dp.simulate(dp.Equation(diffusion=0.1), torch.randn(1, 8, 4), times, method="strang")
    >>> path.states.shape
    torch.Size([11, 1, 8, 4])

    Args:
        equation: What drives the field.
        u0: The field at the first time, [batch, length, dim]; under a projection its nearest point
            on the sphere is where the run begins.
        times: Increasing times; the first is the start.
        method: An integrator or its name.
        substeps: Steps between one time and the next.
        valid_mask: True = real token.
    """
    integrator = check_one_of("method", method, Integrator)
    check_field("u0", u0)
    check_positive("substeps", substeps)
    clock = check_times(times)
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, u0)
    _check_depth(equation, clock)
    project = equation.projector(valid_mask)
    u = project(u0) if project else u0
    start, states, ceiling = u, [u], blow_up_ceiling(u)
    for begin, end in itertools.pairwise(clock):
        for layer, a, b, steps in _pieces(equation, begin, end, substeps):
            terms = equation.terms(start, layer=layer, valid_mask=valid_mask)
            arranged = plan(integrator, terms, project)
            u = integrate(
                arranged.terms, u, (a, b), method=arranged.tableau, splitting=arranged.splitting,
                substeps=steps, project=project, ceiling=ceiling,
            ).final  # fmt: skip
        states.append(u)
    return Trajectory(
        times=torch.tensor(clock, dtype=torch.float64),
        states=torch.stack(states),
        method=integrator.value,
        terms=equation.active,
    )


def _pieces(
    equation: Equation, begin: float, end: float, substeps: int
) -> Iterator[tuple[int, float, float, int]]:
    """Cut an interval where one layer ends and the next begins.

    Yields the layer, the ends of the piece, and its steps: as long as asked for, or shorter.
    """
    if equation.layers is None:
        yield 0, begin, end, substeps
        return
    dt = (end - begin) / substeps
    cuts = [begin, *range(math.floor(begin + SAME) + 1, math.ceil(end - SAME)), end]
    for a, b in itertools.pairwise(cuts):
        layer = min(math.floor((a + b) / 2), equation.layers - 1)
        yield layer, a, b, max(1, math.ceil((b - a) / dt - SAME))


def _check_depth(equation: Equation, clock: list[float]) -> None:
    if equation.layers is None:
        return
    if clock[0] < -SAME or clock[-1] > equation.layers + SAME:
        raise ValueError(
            f"`times` must lie in [0, {equation.layers}], the depth of an equation of "
            f"{equation.layers} layers, got [{clock[0]:g}, {clock[-1]:g}]; shorten the times, or "
            "give maps that are the same in every layer"
        )

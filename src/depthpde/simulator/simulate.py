"""Simulate: follow an equation through depth time.

u_t = Σ_k F_k(u, t),    u(t_0) = u_0        →        u(t_0), u(t_1), …
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial

import torch
from torch import Tensor

from depthpde.errors import (
    check_field,
    check_flag,
    check_mask,
    check_name,
    check_one_of,
    check_positive,
    shown,
)
from depthpde.shapes import Field, Mask
from depthpde.simulator.equation import Equation
from depthpde.simulator.integrator import Integrator, plan
from depthpde.simulator.system import System
from depthpde.solvers.adjoint import adjoint_step
from depthpde.solvers.backend import is_peer, solve_by_peer
from depthpde.solvers.blow_up import BlowUpError, explain
from depthpde.solvers.checkpointing import Noting, replay
from depthpde.solvers.events import Event
from depthpde.solvers.follow import Integration, Watching
from depthpde.solvers.integrate import check_times, integrate
from depthpde.solvers.steppers.fixed import DoublingStepper, FixedStepper
from depthpde.solvers.steppers.methods import AUTO, ORDERS, build_stepper, choose_method
from depthpde.solvers.steppers.stepper import Stepper
from depthpde.solvers.term import Term
from depthpde.solvers.tolerance import Tolerance
from depthpde.solvers.trajectory import Statistics, Trajectory

SAME = 1e-6
"""Two times closer than this are one."""


class GradientMethod(StrEnum):
    """How gradients pass through a run."""

    STEPS = "steps"
    """Through every step as it was computed: exact, memory O(steps)."""
    CHECKPOINT = "checkpoint"
    """The same gradient, memory O(√steps), one more forward pass."""
    ADJOINT = "adjoint"
    """By the continuous adjoint: no graph is kept; right within the tolerance."""


METHODS = (AUTO, *(each.value for each in Integrator), *ORDERS)
"""Every method by name."""


def simulate(
    equation: Equation | System,
    u0: Field | None = None,
    times: Tensor | Sequence[float] | None = None,
    *,
    method: Integrator | str = AUTO,
    rtol: float | None = None,
    atol: float | None = None,
    substeps: int | None = None,
    events: Sequence[Event] = (),
    valid_mask: Mask | None = None,
    max_steps: int = 100_000,
    strict: bool = True,
    dense: bool | None = None,
    gradient: GradientMethod | str = GradientMethod.STEPS,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    """Follow an equation from its start through the times given.

        u(t + dt) ← one step of the method

    Two kinds of methods. Those of `Integrator` take `substeps` equal steps between one time and the
    next: what a Transformer does, and what its discretization is studied with. All others choose
    their steps so that the error of each is at most atol + rtol ‖u‖, sample by sample. Where terms
    are given by layer, layer l acts for l ≤ t < l + 1, and no step crosses into the next. A run
    that blows up raises `BlowUpError`: when, through which term, which bound. Differentiable in the
    start and in everything that the terms depend on.

    >>> times = torch.linspace(0, 2, 11)
    >>> path = dp.simulate(dp.Equation(diffusion=0.1), torch.randn(1, 8, 4), times, method="strang")
    >>> path.states.shape
    torch.Size([11, 1, 8, 4])

    Args:
        equation: What drives the field; or a system of the gallery, which brings start and times.
        u0: The field at the first time, [batch, length, dim]; under a projection its nearest point
            on the sphere is where the run begins. Needed for an equation.
        times: Increasing times at which states are wanted; the first is the start. Needed for an
            equation.
        method: "auto" for an accurate solution; "lie" for what a Transformer computes; any other of
            `METHODS` to compare, or "torchdiffeq:dopri8" for a method of that package.
        rtol: Relative error of a step, 1e-6 unless given; makes the steps of "strang" adaptive.
        atol: Absolute error of a step; a thousandth of `rtol` unless given.
        substeps: Equal steps between one time and the next, for methods of fixed steps; "auto" then
            stands for "strang".
        events: What to watch for on the way, such as `merged(clusters=2)`.
        valid_mask: True = real token.
        max_steps: Steps after which the run ends.
        strict: Whether a run that fails raises. False returns what there is, with a status.
        dense: Whether `path.at` can read between steps; by default where steps are chosen.
        gradient: "steps" differentiates what was computed, and keeps it all; "checkpoint" gives the
            same gradient in memory of the square root of the steps, for one more forward pass;
            "adjoint" keeps no graph, and its error is the tolerance's. The last two end a step at
            every time.
        progress: Called with the time after every step.
    """
    if not isinstance(equation, Equation | System):
        raise ValueError(
            f"`equation` must be an Equation or a system of the gallery, got {shown(equation)}; "
            "use dp.Equation(diffusion=0.1) or dp.systems[NAME]"
        )
    if isinstance(events, Event) or not isinstance(events, Sequence):
        raise ValueError(f"`events` must be a list of events, got {shown(events)}; use [event]")
    check_positive("max_steps", max_steps)
    check_flag("strict", strict)
    if dense is not None:
        check_flag("dense", dense)
    if isinstance(equation, System):
        system, equation = equation, equation.equation
        u0, times = system.u0 if u0 is None else u0, system.times if times is None else times
    if u0 is None or times is None:
        raise ValueError(
            "`u0` and `times` must be given for an equation of your own, got None; only a system "
            "of the gallery brings them"
        )
    name = str(method)
    if not is_peer(name):
        check_name("method", name, METHODS)
    tolerance = _tolerance(name, rtol, atol, substeps)
    if name == AUTO and tolerance is None:
        name = Integrator.STRANG.value
    check_field("u0", u0)
    clock = check_times(times)
    if valid_mask is not None:
        check_mask("valid_mask", valid_mask, u0)
    if tolerance is not None:
        tolerance.check(u0)
    _check_depth(equation, clock)
    project = equation.projector(valid_mask)
    u = project(u0) if project else u0
    start, statistics = u, Statistics()
    watching = Watching(
        events=events, max_steps=max_steps, strict=strict, progress=progress,
        dense=tolerance is not None if dense is None else dense,
    )  # fmt: skip
    run = Integration.begin(u, clock, watching, statistics=statistics)
    kind = check_one_of("gradient", gradient, GradientMethod)
    _check_gradient(kind, events, tolerance, name)
    why, steps = "", substeps or 1
    whole = tolerance is not None and kind is GradientMethod.STEPS
    intervals = [(clock[0], clock[-1])] if whole else itertools.pairwise(clock)
    for begin, end in intervals:
        for layer, a, b, pieces in _pieces(equation, begin, end, steps):
            terms = equation.terms(start, layer=layer, valid_mask=valid_mask)
            if name == AUTO:
                name, why = choose_method(terms, u, a)
            if tolerance is not None and is_peer(name):
                counted = tuple(statistics.count(term) for term in terms)
                inside = [time for time in clock if a < time < b]
                found = solve_by_peer(name, counted, u, [a, *inside, b], tolerance, project)
                u = run.take(found, [*inside, b])
                continue
            stepper, blame = _stepper(name, terms, u, tolerance, project, statistics)
            cover = partial(
                run.cover, start=a, end=b, blame=blame, steps=None if tolerance else pieces
            )
            if kind is GradientMethod.STEPS:
                u = cover(stepper, u)
            elif kind is GradientMethod.CHECKPOINT:
                u = run.replace_last(_checkpointed(stepper, u, a, cover), b)
            else:
                assert tolerance is not None, "checked above"
                solve = partial(
                    integrate, tuple(statistics.count(term) for term in terms), times=(a, b),
                    method=name, tolerance=tolerance, project=project,
                )  # fmt: skip
                u = adjoint_step(terms, u, a, b, solve, tolerance)
                run.take([u], [b])
    return run.path(name, equation.active, why)


def _tolerance(
    name: str, rtol: float | None, atol: float | None, substeps: int | None
) -> Tolerance | None:
    """Tell whether steps are chosen, and by which tolerance; None where they are fixed."""
    wanted = rtol is not None or atol is not None
    if substeps is not None:
        check_positive("substeps", substeps)
        if wanted:
            raise ValueError(
                f"`substeps` must be left out where `rtol` or `atol` is given, got {substeps}: "
                "either the steps are fixed or their error is; drop one"
            )
        return None
    if is_peer(name) and not wanted:
        return Tolerance()
    known = {each.value for each in Integrator}
    if name in known and name != Integrator.STRANG.value and wanted:
        raise ValueError(
            f"`rtol` must be left out for {name!r}, which does not know the error of its step; use "
            "substeps, or method='auto'"
        )
    if name in known and not wanted:
        return None
    return Tolerance(rtol=1e-6 if rtol is None else rtol, atol=atol)


def _checkpointed(
    stepper: Stepper, u: Field, start: float, cover: Callable[[Stepper, Field], Field]
) -> Field:
    """Follow a piece without gradients, then take its steps again with checkpoints."""
    noting = Noting(stepper)
    with torch.no_grad():
        end = cover(noting, u)
    return replay(stepper, u, start, noting.taken)[-1] if noting.taken else end


def _check_gradient(
    kind: GradientMethod, events: Sequence[Event], tolerance: Tolerance | None, name: str
) -> None:
    if kind is GradientMethod.STEPS:
        return
    if events:
        raise ValueError(
            f"`events` must be left out where `gradient` is {kind.value!r}, got {len(events)}; use "
            "gradient='steps', or end the times where the event happened"
        )
    if kind is GradientMethod.ADJOINT and (tolerance is None or name not in (AUTO, *ORDERS)):
        raise ValueError(
            f"`method` must choose its own steps where `gradient` is 'adjoint', got {name!r}: the "
            "adjoint is that of the exact flow; use 'auto', or gradient='checkpoint'"
        )


def _stepper(
    name: str,
    terms: tuple[Term, ...],
    u: Field,
    tolerance: Tolerance | None,
    project: Callable[[Field], Field] | None,
    statistics: Statistics,
) -> tuple[Stepper, Callable[[Field, float, float], BlowUpError]]:
    """Build the method of one piece, and what explains its failure."""
    counted = tuple(statistics.count(term) for term in terms)
    if name in ORDERS:
        stepper = build_stepper(name, counted, u, tolerance, project)
        return stepper, lambda u, t, dt: explain(terms, u, t, dt, method=name)
    arranged = plan(Integrator(name), counted, project)
    fixed = FixedStepper(arranged.terms, arranged.tableau, arranged.splitting, project)

    def blame(u: Field, t: float, dt: float) -> BlowUpError:
        return explain(
            arranged.terms, u, t, dt, method=arranged.tableau.name, tableau=arranged.tableau,
            split=arranged.splitting,
        )  # fmt: skip

    if tolerance is None:
        return fixed, blame
    return DoublingStepper(fixed, Integrator(name).order, tolerance), blame


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

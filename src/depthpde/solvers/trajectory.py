"""Trajectory: the field over time, how the run ended and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from time import perf_counter
from typing import Any

from torch import Tensor

from depthpde.shapes import Field
from depthpde.solvers.plot import draw_path
from depthpde.solvers.segment import Segment
from depthpde.solvers.term import Term


class SolverStatus(StrEnum):
    """How a run ended.

    >>> [each.value for each in dp.SolverStatus]
    ['reached', 'event', 'blew up', 'too many steps']
    """

    REACHED = "reached"
    """The last time was reached."""
    EVENT = "event"
    """A terminal event stopped it."""
    BLEW_UP = "blew up"
    """The field left every bound, or no step was short enough."""
    TOO_MANY_STEPS = "too many steps"
    """`max_steps` were taken before the last time."""


@dataclass(slots=True, kw_only=True)
class Statistics:
    """What a run cost, counted while it runs."""

    steps: int = 0
    """Steps that were kept."""
    rejected: int = 0
    """Steps whose error was too large, or that left the numbers."""
    evaluations: dict[str, int] = field(default_factory=dict)
    """How often each term was evaluated, solved for or flowed."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Time spent in each term."""
    largest_error: float = 0.0
    """The largest error estimate of a kept step, in units of what was allowed; at most 1."""

    def count(self, term: Term) -> Term:
        """Return the term with its calls counted and timed."""
        name = term.name
        self.evaluations.setdefault(name, 0)
        self.seconds.setdefault(name, 0.0)

        def counted(call: Callable[..., Field]) -> Callable[..., Field]:
            def run(*arguments: object) -> Field:
                begun = perf_counter()
                result = call(*arguments)
                _check_shape(name, result, arguments[0])
                self.seconds[name] += perf_counter() - begun
                self.evaluations[name] += 1
                return result

            return run

        return Term(
            name=name,
            rhs=counted(term.rhs),
            solve=counted(term.solve) if term.solve else None,
            flow=counted(term.flow) if term.flow else None,
            limit=term.limit,
            generator=term.generator,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One event that happened."""

    name: str
    """Which."""
    time: float
    """When."""
    sample: int
    """In which sample of the batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Trajectory:
    """The field at the times that were wanted, and in between.

    >>> path = dp.simulate(dp.Equation(diffusion=1.0), torch.randn(1, 8, 2), (0.0, 2.0))
    >>> path.at(0.5).shape, path.status.value
    (torch.Size([1, 8, 2]), 'reached')
    """

    times: Tensor
    """[times], increasing; the last is where the run ended."""
    states: Tensor
    """[times, batch, length, dim]; the first is the start."""
    method: str
    """How it was computed."""
    terms: tuple[str, ...]
    """The names of what drove it."""
    status: SolverStatus = SolverStatus.REACHED
    """How it ended."""
    message: str = ""
    """Why it ended early, or why `auto` chose its method."""
    statistics: Statistics = field(default_factory=Statistics)
    """What it cost."""
    events: tuple[Firing, ...] = ()
    """What happened on the way, in order of time."""
    segments: tuple[Segment, ...] = ()
    """The steps, open to be read between their ends."""

    def at(self, time: float) -> Field:
        """Return the field at any time of the run.

        A recorded time gives the recorded state; any other is read from the step that contains it,
        with an error O(h⁴) or that of the method, whichever is larger.
        """
        nearest = int((self.times - time).abs().argmin())
        if abs(float(self.times[nearest]) - time) <= 1e-9 * (1 + abs(time)):
            return self.states[nearest]
        first, last = float(self.times[0]), float(self.times[-1])
        if not first <= time <= last:
            raise ValueError(
                f"`time` must lie within the path, [{first:g}, {last:g}], got {time:g}; simulate "
                "up to a later time"
            )
        for segment in self.segments:
            if segment.start <= time <= segment.end:
                return segment.at(time)
        raise ValueError(
            f"`time` must be one of the {len(self.times)} recorded times, got {time:g}; "
            f"the nearest is {float(self.times[nearest]):g}, and nothing was kept in between: "
            "record more times"
        )

    def event(self, name: str) -> float:
        """Return when an event first happened."""
        for firing in self.events:
            if firing.name == name:
                return firing.time
        happened = ", ".join(sorted({firing.name for firing in self.events})) or "none"
        raise ValueError(
            f"`name` must be an event that happened, got {name!r}, which did not up to "
            f"t = {float(self.times[-1]):g}; {happened} did; simulate longer or move its bound"
        )

    def plot(self, what: str = "field", *, ax: Any = None) -> Any:
        """Draw the path, and return matplotlib's axes.

        Args:
            what: "field" (first feature over sites and time), "energy", "clusters" or "spectrum".
            ax: Axes to draw into; new ones unless given.

        Example:
            >>> path.plot("energy").figure.savefig("energy.png")
        """
        return draw_path(self.times, self.states, what, ax)

    @property
    def final(self) -> Field:
        """Return the field at the last time."""
        return self.states[-1]

    def __repr__(self) -> str:
        """Describe it without its numbers."""
        span = f"{float(self.times[0]):g} … {float(self.times[-1]):g}"
        shape = list(self.states.shape[1:])
        ended = "" if self.status is SolverStatus.REACHED else f", {self.status.value}"
        return (
            f"Trajectory({' + '.join(self.terms)} by {self.method}, {len(self.times)} times "
            f"{span}, field {shape}{ended})"
        )


def _check_shape(name: str, result: Field, u: object) -> None:
    if not isinstance(result, Tensor) or not isinstance(u, Tensor) or result.shape != u.shape:
        got = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        wanted = list(u.shape) if isinstance(u, Tensor) else "a field"
        raise ValueError(
            f"the rate of term '{name}' must have the field's shape {wanted}, got {got}; return "
            "one change for each site and feature"
        )

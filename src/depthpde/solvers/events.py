"""Events: what is watched for on the way, and when exactly it happened.

    fires for sample b at the first t with  measure_b(u(t)) ≤ bound   (or ≥ bound)

A step whose end fulfils what its start did not is searched by bisection on its dense output, so an
event costs no evaluation of the equation. One that comes and goes within a single step is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from depthpde.errors import check_flag, check_positive, check_range, is_number, shown
from depthpde.operators.energy import dirichlet_energy
from depthpde.shapes import Field
from depthpde.solvers.clusters import count_clusters
from depthpde.solvers.segment import Segment
from depthpde.solvers.trajectory import Firing

HALVINGS = 50
"""Bisections of one step: below rounding for any step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A number of the field that is watched, and the bound it must pass.

    >>> low = dp.Event(name="low", measure=lambda u: u.amax(dim=(1, 2)), bound=1.01)
    >>> u0 = torch.tensor([0.0, 2.0]).reshape(1, 2, 1)
    >>> path = dp.simulate(dp.Equation(diffusion=1.0), u0, (0.0, 9.0), events=[low])
    >>> path.status.value, path.events[0].name
    ('event', 'low')
    """

    name: str
    """What the path calls it."""
    measure: Callable[[Field], Tensor]
    """Takes the field, gives one number for each sample, [batch] or a scalar."""
    bound: float
    """The value to pass."""
    rising: bool = False
    """Whether it fires at the bound and above; otherwise at the bound and below."""
    terminal: bool = True
    """Whether the run ends once it has fired for every sample."""

    def __post_init__(self) -> None:
        """Refuse what could never fire, or always would."""
        if not callable(self.measure):
            raise ValueError(f"`measure` must be a function of a field, got {shown(self.measure)}")
        if not is_number(self.bound):
            raise ValueError(f"`bound` must be a finite number, got {shown(self.bound)}")
        check_flag("rising", self.rising)
        check_flag("terminal", self.terminal)

    def holds(self, u: Field) -> Tensor:
        """Tell for which samples the bound is passed, [batch]."""
        with torch.no_grad():
            value = torch.as_tensor(self.measure(u)).expand(u.shape[0])
        return value >= self.bound if self.rising else value <= self.bound


class Watch:
    """Follow several events along a run.

    Args:
        events: What to watch for; names must differ.
        u: The field at the start; what holds there fires at once.
        t: The time of the start.
    """

    def __init__(self, events: Sequence[Event], u: Field, t: float) -> None:
        for event in events:
            if not isinstance(event, Event):
                raise ValueError(f"`events` must hold events, got {shown(event)}; use dp.merged()")
        names = [event.name for event in events]
        if len(set(names)) < len(names):
            raise ValueError(f"`events` must have names of their own, got {names}; rename one")
        self.events = tuple(events)
        self.fired: list[Firing] = []
        self._pending = {
            event.name: torch.ones(u.shape[0], dtype=torch.bool, device=u.device)
            for event in events
        }
        for event in self.events:
            self._fire(event, event.holds(u), lambda sample: t)

    def look(self, segment: Segment, u: Field) -> float | None:
        """Look for events within a step.

        Args:
            segment: The step.
            u: The field at its end.

        Returns:
            When the run must end; None if it goes on.
        """
        for event in self.events:
            now = event.holds(u)
            self._fire(event, now, partial(_bisect, event, segment))
        self.fired.sort(key=lambda firing: firing.time)
        return self.stop

    @property
    def stop(self) -> float | None:
        """Give the time at which a terminal event had fired for every sample; None if none has."""
        ends = []
        for event in self.events:
            if event.terminal and not self._pending[event.name].any():
                ends.append(max(each.time for each in self.fired if each.name == event.name))
        return min(ends, default=None)

    def _fire(self, event: Event, now: Tensor, when: Callable[[int], float]) -> None:
        pending = self._pending[event.name]
        for sample in (pending & now).nonzero().flatten().tolist():
            self.fired.append(Firing(name=event.name, time=when(sample), sample=sample))
        self._pending[event.name] = pending & ~now


def energy_below(bound: float, *, terminal: bool = True) -> Event:
    """Fire when the Dirichlet energy ½ Σ ‖u_{i+1} − u_i‖² has fallen to a bound.

    >>> heat, u0 = dp.Equation(diffusion=1.0), torch.randn(1, 8, 2)
    >>> dp.simulate(heat, u0, (0.0, 99.0), events=[dp.energy_below(0.01)]).status.value
    'event'
    """
    return Event(name="energy_below", measure=dirichlet_energy, bound=bound, terminal=terminal)


def norm_above(bound: float, *, terminal: bool = True) -> Event:
    """Fire when the norm of a site has risen to a bound.

    >>> free = dp.Stabilizer(norm="none")
    >>> growth = dp.Equation(reaction=torch.nn.Identity(), stabilizer=free)
    >>> path = dp.simulate(growth, torch.ones(1, 4, 2), (0.0, 9.0), events=[dp.norm_above(100.0)])
    >>> round(path.event("norm_above"), 2)   # √2 eᵗ = 100
    4.26
    """

    def measure(u: Field) -> Tensor:
        return u.norm(dim=-1).amax(dim=-1)

    return Event(name="norm_above", measure=measure, bound=bound, rising=True, terminal=terminal)


def merged(clusters: int = 1, *, apart: float = 1e-2, terminal: bool = True) -> Event:
    """Fire when so few clusters are left.

    Args:
        clusters: How many may be left.
        apart: Sites nearer than this, in units of the mean norm, are of one cluster.
        terminal: Whether the run ends there.

    >>> dp.simulate(dp.systems["clustering"], events=[dp.merged(clusters=2)]).status.value
    'event'
    """
    check_positive("clusters", clusters)
    check_range("apart", apart, 0.0, 1e6)

    def measure(u: Field) -> Tensor:
        return count_clusters(u, apart=apart)

    return Event(name="merged", measure=measure, bound=float(clusters), terminal=terminal)


def _bisect(event: Event, segment: Segment, sample: int) -> float:
    low, high = segment.start, segment.end
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if bool(event.holds(segment.at(middle))[sample]):
            high = middle
        else:
            low = middle
    return high

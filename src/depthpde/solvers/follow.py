"""Follow a method through time: one loop for every method.

fixed steps   dt = (end − start) / substeps        chosen steps   shorter until the error is allowed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from depthpde.errors import check_positive
from depthpde.shapes import Field
from depthpde.solvers.blow_up import BlowUpError, blow_up_ceiling
from depthpde.solvers.events import Event, Watch
from depthpde.solvers.segment import Segment
from depthpde.solvers.steppers.stepper import StepAttempt, Stepper, StepState
from depthpde.solvers.trajectory import SolverStatus, Statistics, Trajectory

ROUNDING = 16 * torch.finfo(torch.float64).eps
"""Steps shorter than this, relative to the time, change nothing."""
Blame = Callable[[Field, float, float], BlowUpError]
"""From the last good field, its time and the step that failed, to why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What is done along a run beside stepping."""

    events: Sequence[Event] = ()
    """What to watch for."""
    max_steps: int = 100_000
    """Steps, rejected ones included, after which the run ends."""
    strict: bool = True
    """Whether a run that fails raises; otherwise its path says so by its status."""
    dense: bool = True
    """Whether steps are kept to be read in between; costs a few fields a step."""
    progress: Callable[[float], None] | None = None
    """Called with the time after every step."""

    def __post_init__(self) -> None:
        """Refuse a run without steps."""
        check_positive("max_steps", self.max_steps)


@dataclass(slots=True, kw_only=True)
class Integration:
    """A run on its way: what was recorded, and how it stands."""

    clock: list[float]
    """Times at which states are wanted; the first is the start."""
    watching: Watching
    """What is done beside stepping."""
    statistics: Statistics
    """What it has cost."""
    ceiling: float
    """A field beyond this has blown up."""
    watch: Watch
    """The events."""
    states: list[Field]
    """The states recorded so far; the first is the start."""
    segments: list[Segment] = field(default_factory=list)
    status: SolverStatus = SolverStatus.REACHED
    message: str = ""
    stopped: float | None = None
    """When the run ended early."""
    last_step: float | None = None
    """The step that was due next, to begin the next piece with."""

    @classmethod
    def begin(
        cls,
        u0: Field,
        clock: list[float],
        watching: Watching,
        *,
        statistics: Statistics,
        ceiling: float | None = None,
    ) -> Integration:
        """Begin at a field, which must be finite."""
        if not bool(u0.detach().isfinite().all()):
            raise ValueError(
                "`u0` must be finite, got NaN or infinity in it; look at where it was made"
            )
        watch = Watch(watching.events, u0, clock[0])
        run = cls(
            clock=clock, watching=watching, statistics=statistics, watch=watch, states=[u0],
            ceiling=blow_up_ceiling(u0) if ceiling is None else ceiling,
        )  # fmt: skip
        if watch.stop is not None:
            run.status, run.stopped = SolverStatus.EVENT, clock[0]
        return run

    def cover(
        self,
        stepper: Stepper,
        u: Field,
        start: float,
        end: float,
        blame: Blame,
        *,
        steps: int | None = None,
    ) -> Field:
        """Follow a method over one interval, and return the field at its end.

        Args:
            stepper: The method.
            u: The field at the start.
            start: Where the interval begins.
            end: Where it ends.
            blame: Why it failed, if it does.
            steps: Fixed steps of equal length; None lets the method choose.
        """
        if self.has_stopped():
            return u
        state = stepper.start(u, start)
        fixed = None if steps is None else (end - start) / steps
        dt = fixed or min(end - start, self.last_step or stepper.first_step(state))
        taken = 0
        while taken < steps if steps is not None else end - state.t > ROUNDING * (1 + abs(end)):
            if steps is not None:
                state = replace(state, t=start + taken * dt)
            length = dt if steps is not None else _fit(dt, end - state.t)
            attempt = stepper.attempt(state, length)
            if not self._keep(stepper, attempt, state, length, blame):
                return stepper.field(state)
            taken += attempt.accepted
            state = attempt.state
            dt = dt if steps is not None else _next(dt, length, attempt)
            if self.has_stopped():
                return self.states[-1]
        self.last_step = None if steps is not None else dt
        final = stepper.field(state)
        wanted = self._wanted()
        if wanted is not None and abs(wanted - end) <= ROUNDING * (1 + abs(end)):
            self.states.append(final)
        return final

    def take(self, states: Sequence[Field], times: Sequence[float]) -> Field:
        """Record what somebody else has computed, and return the last of it.

        Args:
            states: The field at each of the times.
            times: Increasing; those that are wanted are recorded.
        """
        if self.watching.events:
            raise ValueError(
                f"`events` must be left out for a peer's method, got {len(self.watching.events)}: "
                "it gives no dense output to search; use 'auto' or another of our own methods"
            )
        for state, time in zip(states, times, strict=True):
            wanted = self._wanted()
            if wanted is not None and abs(wanted - time) <= ROUNDING * (1 + abs(time)):
                self.states.append(state)
        return states[-1]

    def replace_last(self, state: Field, time: float) -> Field:
        """Put a state that gradients pass through in the place of the one recorded at its time."""
        if abs(self.clock[len(self.states) - 1] - time) <= ROUNDING * (1 + abs(time)):
            self.states[-1] = state
        return state

    def has_stopped(self) -> bool:
        """Tell whether the run has ended before its last time."""
        return self.stopped is not None

    def path(self, method: str, terms: tuple[str, ...], message: str = "") -> Trajectory:
        """Give what was recorded as a trajectory."""
        times = self.clock[: len(self.states)]
        if self.stopped is not None and len(self.states) > 1:
            times = [*self.clock[: len(self.states) - 1], self.stopped]
        return Trajectory(
            times=torch.tensor(times, dtype=torch.float64),
            states=torch.stack(self.states),
            method=method,
            terms=terms,
            status=self.status,
            message=self.message or message,
            statistics=self.statistics,
            events=tuple(self.watch.fired),
            segments=tuple(self.segments),
        )

    def _keep(
        self, stepper: Stepper, attempt: StepAttempt, state: StepState, length: float, blame: Blame
    ) -> bool:
        """Take note of one attempt; False if the run ends at the state before it."""
        statistics, watching = self.statistics, self.watching
        if attempt.accepted:
            size = float(attempt.state.tensors[0].detach().abs().max())
            if not size <= self.ceiling:  # NaN compares false
                return self._fail(SolverStatus.BLEW_UP, stepper, state, blame, length)
            statistics.steps += 1
            statistics.largest_error = max(statistics.largest_error, attempt.error)
            self._record(stepper, attempt)
            if watching.progress is not None:
                watching.progress(attempt.state.t)
        else:
            statistics.rejected += 1
            if length * attempt.factor <= ROUNDING * (abs(state.t) + length):
                return self._fail(SolverStatus.BLEW_UP, stepper, state, blame, length)
        many = statistics.steps + statistics.rejected >= watching.max_steps
        done = attempt.accepted and attempt.state.t >= self.clock[-1] * (1 - ROUNDING)
        if many and not done and self.stopped is None:
            return self._fail(SolverStatus.TOO_MANY_STEPS, stepper, attempt.state, blame, length)
        return True

    def _record(self, stepper: Stepper, attempt: StepAttempt) -> None:
        segment, stop = attempt.segment, None
        if self.watch.events:
            stop = self.watch.look(segment, stepper.field(attempt.state))
        if self.watching.dense:
            self.segments.append(segment)
        until = segment.end if stop is None else stop
        slack = ROUNDING * (1 + abs(segment.end))
        while (wanted := self._wanted()) is not None and wanted < until - slack:
            self.states.append(segment.at(wanted))
        if stop is not None:
            self.status, self.stopped = SolverStatus.EVENT, stop
            self.states.append(segment.at(stop))

    def _wanted(self) -> float | None:
        return self.clock[len(self.states)] if len(self.states) < len(self.clock) else None

    def _fail(
        self, status: SolverStatus, stepper: Stepper, state: StepState, blame: Blame, length: float
    ) -> bool:
        u = stepper.field(state)
        if status is SolverStatus.BLEW_UP:
            error: ValueError = blame(u, state.t, length)
        else:
            error = ValueError(
                f"`max_steps` must let the run reach t = {self.clock[-1]:g}, got "
                f"{self.watching.max_steps}, which ended at t = {state.t:g} with "
                f"dt = {length:.2g}; allow more, or a larger rtol"
            )
        if self.watching.strict:
            raise error
        self.status, self.message, self.stopped = status, str(error), state.t
        if state.t > self.clock[len(self.states) - 1]:
            self.states.append(u)
        return False


def _fit(dt: float, left: float) -> float:
    """Shorten a step to what is left, or stretch it a little to leave no crumb."""
    if dt >= left * (1 - 1e-3):
        return left
    return 0.5 * left if dt > 0.5 * left else dt


def _next(dt: float, length: float, attempt: StepAttempt) -> float:
    """Choose the next step: one cut short by the end of the interval says little about it."""
    if attempt.accepted and attempt.factor >= 1:
        return max(dt, length * attempt.factor) if length < dt else length * attempt.factor
    return length * attempt.factor

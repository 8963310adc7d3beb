"""A named system: an equation, where it starts, and what is known about it in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from depthpde.errors import check_name
from depthpde.shapes import Field
from depthpde.simulator.equation import Equation
from depthpde.solvers.trajectory import Trajectory


class View(StrEnum):
    """How a system is best seen."""

    TOKENS = "tokens"
    """Points on the circle or sphere, moving."""
    FIELD = "field"
    """A feature over sites and time."""
    IMAGE = "image"
    """A feature over the plane, moving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A number known by a formula beside the same number computed."""

    quantity: str
    """What, in words."""
    predicted: float
    """By the formula."""
    computed: float
    """From the path."""
    tolerance: float
    """How far they may differ, and still agree: what the formula neglects."""

    @property
    def agrees(self) -> bool:
        """Whether both agree; never for NaN."""
        return abs(self.computed - self.predicted) <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class System:
    """An equation with its start, its times, and what is known about it.

    >>> gaussian = dp.systems["gaussian"]
    >>> isinstance(gaussian, dp.System), gaussian.known(dp.simulate(gaussian))[0].agrees
    (True, True)
    """

    name: str
    """How a person asks for it."""
    title: str
    """What happens, in one sentence."""
    equation: Equation
    """What drives the field."""
    u0: Field
    """Where it starts."""
    times: tuple[float, ...]
    """When it is looked at."""
    known: Callable[[Trajectory], tuple[Known, ...]]
    """What theory says, beside what a path shows."""
    view: View = View.FIELD
    """How it is best seen."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """The numbers it was built with."""
    stacked: tuple[str, ...] = ()
    """Parameters of which the samples of one batch may have different values; see `phase`."""
    build: Callable[..., System] | None = None
    """Builds it with other numbers; None where there is nothing to vary."""

    def vary(self, **parameters: float) -> System:
        """Return the system with other parameters.

        Args:
            **parameters: Of `parameters`, such as `beta=9.0`.
        """
        for name in parameters:
            check_name("parameters", name, self.parameters)
        if self.build is None:
            return self
        return self.build(**{**self.parameters, **parameters})

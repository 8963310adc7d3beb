"""Phase diagrams: one number of a system over a grid of its parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from depthpde.errors import check_name
from depthpde.shapes import Field
from depthpde.simulator.simulate import simulate
from depthpde.simulator.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDiagram:
    """A labelled table: one number for every combination of parameters."""

    system: str
    """Whose."""
    axes: Mapping[str, tuple[float, ...]]
    """The parameters and their values, slowest first."""
    values: tuple[float, ...]
    """One for each combination, in the order of `itertools.product`."""

    def at(self, **parameters: float) -> float:
        """Give the number at one combination."""
        for name in parameters:
            check_name("parameters", name, self.axes)
        rows = list(itertools.product(*self.axes.values()))
        wanted = tuple(parameters[name] for name in self.axes)
        if wanted not in rows:
            raise ValueError(
                f"`parameters` must be a combination of the diagram, got {parameters}; it has "
                f"{ {name: list(each) for name, each in self.axes.items()} }"
            )
        return self.values[rows.index(wanted)]

    def rows(self) -> list[dict[str, float]]:
        """Give the table, one dictionary a row, for pandas or a file."""
        return [
            {**dict(zip(self.axes, point, strict=True)), "value": value}
            for point, value in zip(
                itertools.product(*self.axes.values()), self.values, strict=True
            )
        ]

    def plot(self, *, ax: Any = None) -> Any:
        """Draw it over its first two axes, and return matplotlib's axes."""
        from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        names = list(self.axes)
        if len(names) == 1:
            ax.plot(self.axes[names[0]], self.values, marker="o", color="#1f4e79")
            ax.set(xlabel=names[0], ylabel="value", title=self.system)
            return ax
        grid = torch.tensor(self.values).reshape(len(self.axes[names[0]]), -1)
        image = ax.pcolormesh(list(self.axes[names[1]]), list(self.axes[names[0]]), grid)
        ax.figure.colorbar(image, ax=ax)
        ax.set(xlabel=names[1], ylabel=names[0], title=self.system)
        return ax


def phase(
    system: System,
    over: Mapping[str, Sequence[float]],
    measure: Callable[[Field], float],
    *,
    rtol: float = 1e-6,
) -> PhaseDiagram:
    """Measure the end state of a system over a grid of its parameters.

    All combinations of parameters that only change numbers of the equation (`system.stacked`, such
    as beta and diffusion) are samples of one batch, each within the tolerance; what changes shapes
    or times, such as the number of tokens, takes a run for each of its values.

    Args:
        system: One of the gallery.
        over: Values of one or more of its parameters.
        measure: Takes the final field, gives a number.
        rtol: Relative error of a step.

    >>> found = dp.phase(dp.systems["gaussian"], {"end": [1, 2]}, lambda u: float(u.var()))
    >>> len(found.values)
    2
    """
    if not over:
        raise ValueError("`over` must name at least one parameter, got none; use {'beta': [1, 4]}")
    axes = {name: tuple(float(each) for each in values) for name, values in over.items()}
    for name in axes:
        check_name("parameters", name, system.parameters)
    points = [dict(zip(axes, each, strict=True)) for each in itertools.product(*axes.values())]
    batches: dict[tuple[float, ...], list[int]] = {}
    for number, point in enumerate(points):
        apart = tuple(value for name, value in point.items() if name not in system.stacked)
        batches.setdefault(apart, []).append(number)
    found = [0.0] * len(points)
    for numbers in batches.values():
        finals = _finals(system, [points[number] for number in numbers], rtol)
        for number, final in zip(numbers, finals, strict=True):
            found[number] = float(measure(final[None]))
    return PhaseDiagram(system=system.name, axes=axes, values=tuple(found))


def _finals(system: System, points: Sequence[Mapping[str, float]], rtol: float) -> Field:
    """Simulate combinations that differ in stacked parameters alone as one batch."""
    assert system.build is not None, "its parameters were checked"
    chosen: dict[str, Any] = {**system.parameters, **points[0]}
    for name in set(points[0]) & set(system.stacked):
        column = [point[name] for point in points]
        chosen[name] = torch.tensor(column, dtype=torch.float64)[:, None, None]
    varied = system.build(**chosen)
    u0 = varied.u0.expand(len(points), -1, -1)
    span = (varied.times[0], varied.times[-1])
    with torch.no_grad():
        return simulate(varied.equation, u0, span, rtol=rtol, dense=False).final

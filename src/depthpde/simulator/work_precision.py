"""Work–precision diagrams: error against evaluations, for every method on any equation.

one point = one run:   evaluations of the dearest term   →   ‖u − u_exact‖ / ‖u_exact‖
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from depthpde.shapes import Field
from depthpde.simulator.equation import Equation
from depthpde.simulator.simulate import simulate
from depthpde.solvers.blow_up import BlowUpError

CHOSEN = ("auto", "tsit5", "dopri5", "bosh3", "etd4", "etd4_stiff", "ark3", "ark4")
"""Methods that choose their steps, compared by tolerance."""
FIXED = ("lie", "strang", "heun", "rk4", "backward_euler")
"""Methods of fixed steps, compared by their number."""
TOLERANCES = tuple(10.0**-k for k in range(2, 8))
STEPS = tuple(4**k for k in range(1, 6))
MOST = 2_000
"""Steps after which a run is no longer worth its place in the diagram."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPoint:
    """One run of one method."""

    method: str
    """Its name."""
    setting: float
    """The tolerance, or the number of steps."""
    evaluations: int
    """Evaluations of the term that was evaluated most rarely beside diffusion: the dearest."""
    error: float
    """Relative, at the last time; infinite where the run failed."""


def work_precision(
    equation: Equation,
    u0: Field,
    times: Sequence[float],
    *,
    methods: Sequence[str] = (*CHOSEN, *FIXED),
    judge: float = 1e-10,
) -> tuple[list[WorkPoint], float]:
    """Run every method over a ladder of tolerances or steps.

    The exact solution is that of "adams" at `judge`; how far "etd4_stiff" at a hundred times that
    differs from it is returned, as a bound on the error of the judge itself.

    Args:
        equation: What drives the field.
        u0: The start.
        times: The first and the last are used.
        methods: Of `CHOSEN` and `FIXED`; one that cannot do the equation is left out.
        judge: Tolerance of the exact solution.

    Returns:
        The points, and the error of the judge.

    >>> heat, u0 = dp.Equation(diffusion=1.0), torch.randn(1, 8, 2).double()
    >>> points, floor = dp.work_precision(heat, u0, (0.0, 1.0), methods=("tsit5",))
    >>> min(point.error for point in points) < 1e-6
    True
    """
    span = (float(times[0]), float(times[-1]))
    with torch.no_grad():
        exact = simulate(equation, u0, span, method="adams", rtol=judge, dense=False).final
        rough = simulate(
            equation, u0, span, method="etd4_stiff", rtol=100 * judge, dense=False
        ).final  # fmt: skip
        floor = float((exact - rough).norm() / exact.norm())
        points = [
            point
            for method in methods
            for setting in (TOLERANCES if method in CHOSEN else STEPS)
            if (point := _run(equation, u0, span, method, setting, exact)) is not None
        ]
    return points, floor


def _run(
    equation: Equation,
    u0: Field,
    span: tuple[float, float],
    method: str,
    setting: float,
    exact: Field,
) -> WorkPoint | None:
    try:
        if method in CHOSEN:
            path = simulate(equation, u0, span, method=method, rtol=setting, max_steps=MOST)
        else:
            path = simulate(equation, u0, span, method=method, substeps=int(setting))
    except BlowUpError:
        return WorkPoint(method=method, setting=setting, evaluations=0, error=float("inf"))
    except ValueError:
        return None  # an implicit pair without a linear term, or more steps than are worth it
    counts = path.statistics.evaluations
    dear = [count for name, count in counts.items() if name != "diffusion"] or [*counts.values()]
    error = float((path.final - exact).norm() / exact.norm())
    return WorkPoint(method=method, setting=setting, evaluations=min(dear), error=error)

"""How accurate the simulator is: every method's order, and the error got for the error asked.

Both on solutions that are known exactly; `simulator.py` prints them with the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from depthpde.operators.interaction import attention_weights
from depthpde.operators.reaction import fisher_kpp
from depthpde.simulator.equation import Equation, Projection
from depthpde.simulator.integrator import Integrator
from depthpde.simulator.simulate import simulate
from depthpde.solvers.steppers.exponential import EXPONENTIAL
from depthpde.solvers.steppers.imex import ADDITIVE
from depthpde.solvers.steppers.methods import ORDERS, build_stepper

END, BEAT = 1.0, 6.0
"""When the solution that orders are observed on ends, and how fast it swings."""


@dataclass(frozen=True)
class Row:
    """One line of a table, and the bar it must meet."""

    what: str
    value: float
    bar: float | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the bar is met; a line without one always passes."""
        return self.bar is None or self.value <= self.bar

    def __str__(self) -> str:
        """Print the line."""
        wanted = "" if self.bar is None else f"≤ {self.bar:.3g}"
        mark = "" if self.bar is None else "ok" if self.passed else "MISSED"
        return f"{self.what:<58}{self.value:>9.3g}   {wanted:<9}{mark:<8}{self.note}"


def distance(u: Tensor, exact: Tensor) -> float:
    """Give the relative error."""
    return float((u - exact).norm() / exact.norm())


def orders() -> list[Row]:
    """Observe every method's order on a nonlinear problem whose solution is known."""
    n = 24
    span = torch.arange(n, dtype=torch.float64)
    wave = torch.cos(math.pi * (span + 0.5) / n)[None, :, None]

    def exact(t: float) -> Tensor:
        return (1 + 0.5 * math.sin(BEAT * t)) * wave

    def found(method: str, alpha: float, steps: int) -> float:
        decay = alpha * (2 * math.cos(math.pi / n) - 2)

        def rest(u: Tensor, t: float) -> Tensor:
            pull = 1 / (1 + u**2) - 1 / (1 + exact(t) ** 2)
            return pull + 0.5 * BEAT * math.cos(BEAT * t) * wave - decay * exact(t)

        equation = Equation(diffusion=alpha, source=rest)
        if method not in ORDERS:
            end = simulate(equation, exact(0.0), (0.0, END), method=method, substeps=steps).final
            return distance(end, exact(END))
        stepper = build_stepper(method, equation.terms(exact(0.0)), exact(0.0), None)
        state, worst = stepper.start(exact(0.0), 0.0), 0.0  # at one time alone errors may cancel
        for _ in range(steps):
            state = stepper.attempt(state, END / steps).state
            worst = max(worst, distance(stepper.field(state), exact(state.t)))
        return worst

    declared = {each.value: each.order for each in Integrator}
    declared |= {name: order for name, order in ORDERS.items() if order is not None}
    fine = {1: 320, 2: 160, 3: 80, 4: 32, 5: 96}
    rows = []
    for method, order in declared.items():
        alpha = 4.0 if method in EXPONENTIAL or method in ADDITIVE else 0.5
        errors = [found(method, alpha, steps) for steps in (fine[order] // 2, fine[order])]
        seen = math.log2(errors[0] / errors[1])
        note = f"observed {seen:.3f}, errors {errors[0]:.1e} and {errors[1]:.1e}"
        rows.append(Row(f"order of {method}: distance from {order}", abs(seen - order), 0.15, note))
        print(rows[-1], flush=True)
    return rows


def wanted_and_got() -> list[Row]:
    """Compare the error that was asked for with the one that was got, on exact solutions."""
    from scipy.integrate import solve_ivp

    n, beta, rho = 5, 2.0, 0.1
    gram = torch.full((n, n), rho, dtype=torch.float64).fill_diagonal_(1.0)
    corners = torch.linalg.cholesky(gram)[None]
    sphere = Equation(
        interaction=lambda u: attention_weights(u, u, gain=beta) @ u,
        stabilizer=Projection(kind="rms", radius=1.0),
    )

    def closing(t: float, r: list[float]) -> list[float]:
        e, top = math.exp(beta * r[0]), math.exp(beta)
        return [2 * e * (1 - r[0]) * ((n - 1) * r[0] + 1) / (top + (n - 1) * e)]

    exact = solve_ivp(closing, (0, 3), [rho], rtol=1e-12, atol=1e-13, method="DOP853").y[0, -1]
    start = torch.full((1, 4, 1), 0.05, dtype=torch.float64)
    logistic = start * math.exp(6) / (1 + start * (math.exp(6) - 1))
    reaction = Equation(source=lambda u, t: fisher_kpp(u))
    heat = Equation(diffusion=5.0)
    torch.manual_seed(0)
    rough = torch.randn(1, 64, 4, dtype=torch.float64)
    crowd = torch.nn.functional.normalize(torch.randn(1, 24, 3, dtype=torch.float64), dim=-1)
    gather = simulate(sphere, crowd, (0.0, 8.0), method="tsit5", rtol=1e-12).final
    spread = simulate(heat, rough, (0.0, 1.0), method="tsit5", rtol=1e-12).final
    rows = []
    for method in ("auto", "tsit5", "dopri5"):
        for rtol in (1e-3, 1e-5, 1e-7, 1e-9):
            go = partial(simulate, method=method, rtol=rtol)
            u = go(sphere, corners, (0.0, 3.0)).final[0]
            errors = {
                "heat": distance(go(heat, rough, (0.0, 1.0)).final, spread),
                "logistic": distance(go(reaction, start, (0.0, 6.0)).final, logistic),
                "equiangular": abs(float(u[0] @ u[1]) - exact),
                "clustering": distance(go(sphere, crowd, (0.0, 8.0)).final, gather),
            }
            worst = max(errors, key=lambda each: errors[each])
            note = " ".join(f"{name} {error:.1e}" for name, error in errors.items())
            rows.append(Row(f"{method}, rtol {rtol:g}: worst error / rtol ({worst})",
                            errors[worst] / rtol, 10.0, note))  # fmt: skip
            print(rows[-1], flush=True)
    return rows

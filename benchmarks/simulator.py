"""The simulator against torchdiffeq: evaluations at an error, orders, overhead, memory.

    python benchmarks/simulator.py            print the tables
    python benchmarks/simulator.py --check    and exit 1 if a bar is missed
    python benchmarks/simulator.py --quick    evaluations at diffusivity 1 and 20 only
    python benchmarks/simulator.py --draw docs/img/simulator-work-precision.png

The problem: 128 tokens, dim 16, two heads, pre-norm attention and feed-forward, float64, t from 0
to 2, diffusivity 1, 20 and 200. Evaluations of attention are counted, so those bars do not depend
on the machine. A method's number at an error is the fewest evaluations over a ladder of tolerances
(or steps) with which it gets there; torchdiffeq's is the best of its methods. The exact solution is
Tsitouras' pair at 1e-12 for diffusivity 1 and the stiff-order exponential method at 1e-11 beyond:
neither is the method under test. Times are ratios of interleaved runs, medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from depthpde.layers.interaction import Attention
from depthpde.layers.reaction import FeedForward
from depthpde.layers.stabilizer import Stabilizer
from depthpde.operators.interaction import attention_weights
from depthpde.operators.laplacian import laplacian_matrix
from depthpde.simulator.equation import Equation
from depthpde.simulator.simulate import simulate
from simulator_accuracy import Row, distance, orders, wanted_and_got

ERRORS = (1e-3, 1e-5, 1e-7)
BARS = {1.0: (0.8, 0.8, 0.8), 20.0: (1 / 5, 1 / 5, 1 / 2), 200.0: (1 / 40, 1 / 40, 1 / 6)}
OURS = ("auto", "etd4", "etd4_stiff", "dopri5", "tsit5", "ark4")
TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LADDERS: dict[float, dict[str, list[tuple[int, float]]]] = {}
"""Diffusivity → method → evaluations and error on every rung, as they were measured."""
THEIRS = ("dopri5", "dopri8", "bosh3")


@dataclass
class Problem:
    """The equation whose evaluations are counted."""

    equation: Equation
    u0: Tensor
    calls: list[int]

    def rate(self, t: Tensor, u: Tensor) -> Tensor:
        """Give the right-hand side in torchdiffeq's order."""
        return self.equation.rate(t, u)

    def count(self, run: Callable[[], Tensor]) -> tuple[int, Tensor]:
        """Run, and return how often attention was evaluated."""
        self.calls.clear()
        return_value = run()
        return len(self.calls), return_value


def problem(alpha: float, tokens: int = 128, dim: int = 16) -> Problem:
    """Build the problem of the issue."""
    torch.manual_seed(0)
    attention = Attention(dim, 2, dtype=torch.float64).requires_grad_(False)
    reaction = FeedForward(dim, 2 * dim, dtype=torch.float64).requires_grad_(False)
    calls: list[int] = []

    def attend(u: Tensor) -> Tensor:
        calls.append(1)
        return attention(u)

    u0 = torch.randn(1, tokens, dim, dtype=torch.float64)
    equation = Equation(diffusion=alpha, interaction=attend, reaction=reaction)
    return Problem(equation, u0, calls)


def ladder(
    task: Problem, exact: Tensor, run: Callable[[float], Tensor], rungs: tuple[float, ...]
) -> list[tuple[int, float]]:
    """Give evaluations and error on every rung."""
    found = []
    for rung in rungs:
        calls, u = task.count(partial(run, rung))
        found.append((calls, distance(u, exact)))
        if found[-1][1] < ERRORS[-1]:
            break
    return found


def fewest(found: list[tuple[int, float]], error: float) -> tuple[float, float]:
    """Give the fewest evaluations that reach an error, and the error reached."""
    return min(((float(n), e) for n, e in found if e <= error), default=(math.inf, math.nan))


def evaluations(alpha: float) -> list[Row]:
    """Count evaluations of attention at three errors, ours against torchdiffeq's best."""
    task = problem(alpha)
    judge = ("tsit5", 1e-12) if alpha == 1 else ("etd4_stiff", 1e-11)
    exact = simulate(task.equation, task.u0, (0.0, 2.0), method=judge[0], rtol=judge[1]).final
    tolerances = tuple(10 ** (-k / 2) for k in range(3, 20))
    theirs = peers(task, exact, tolerances if alpha < 200 else tolerances[1::2])
    rows, ladders = [], LADDERS.setdefault(alpha, {})
    ladders |= {f"torchdiffeq {name}": each for name, each in theirs.items()}
    for name in OURS:
        if alpha > 1 and name in ("dopri5", "tsit5"):
            continue  # explicit, so no better than the peer's where diffusion is stiff
        run = partial(own_run, task, name)
        ours = ladders[name] = ladder(task, exact, run, tolerances)
        for error, bar in zip(ERRORS, BARS[alpha], strict=True):
            best = min(theirs, key=lambda each, e=error: fewest(theirs[each], e)[0])
            peer, own = fewest(theirs[best], error), fewest(ours, error)
            note = f"{own[0]:g} ({own[1]:.1e}) against {peer[0]:g} ({peer[1]:.1e}, {best})"
            what = f"diffusivity {alpha:g}, error ≤ {error:g}, {name}"
            rows.append(Row(what, own[0] / peer[0], bar if name == "auto" else None, note))
            print(rows[-1], flush=True)
    return rows


def own_run(task: Problem, method: str, rtol: float) -> Tensor:
    """Run one of our methods."""
    return simulate(task.equation, task.u0, (0.0, 2.0), method=method, rtol=rtol).final


def peers(
    task: Problem, exact: Tensor, tolerances: tuple[float, ...]
) -> dict[str, list[tuple[int, float]]]:
    """Run torchdiffeq's methods; fixed steps too where diffusion lets them be few."""
    from torchdiffeq import odeint

    span = torch.tensor([0.0, 2.0], dtype=torch.float64)

    def chosen(method: str, tol: float) -> Tensor:
        return odeint(task.rate, task.u0, span, method=method, rtol=tol, atol=tol)[-1]

    def fixed(steps: float) -> Tensor:
        options = {"step_size": 2 / steps}
        return odeint(task.rate, task.u0, span, method="rk4", options=options)[-1]

    found = {name: ladder(task, exact, partial(chosen, name), tolerances) for name in THEIRS}
    if task.equation.diffusion == 1:
        found["rk4"] = ladder(task, exact, fixed, (6, 8, 12, 16, 24, 32, 48, 64))
    return found


def overhead(rounds: int = 9) -> list[Row]:
    """Time what a solver spends beside the terms, per evaluation, on a 128 × 64 field."""
    from torchdiffeq import odeint

    torch.manual_seed(0)
    u0 = torch.randn(1, 128, 64, dtype=torch.float64)
    calls: list[int] = []

    def rest(u: Tensor, t: float) -> Tensor:
        calls.append(1)
        return torch.sin(u)

    equation = Equation(diffusion=1.0, source=rest)
    quiet = Equation(source=rest)

    def theirs(tol: float) -> None:
        odeint(lambda t, u: rest(u, 0.0), u0, torch.tensor([0.0, 3.0]).double(), rtol=tol, atol=tol,
               method="dopri5")  # fmt: skip

    runs: dict[str, Callable[[], object]] = {
        "torchdiffeq dopri5": lambda: theirs(1e-8),
        "dopri5": lambda: simulate(quiet, u0, (0.0, 3.0), method="dopri5", rtol=1e-8),
        "adams, no diffusion": lambda: simulate(quiet, u0, (0.0, 3.0), rtol=1e-8),
        "adams, diffusion exact": lambda: simulate(equation, u0, (0.0, 3.0), rtol=1e-8),
    }
    bare = _seconds(lambda: [rest(u0, 0.0) for _ in range(200)]) / 200
    times: dict[str, list[float]] = {name: [] for name in runs}
    with torch.no_grad():
        for _ in range(rounds):
            for name, run in runs.items():
                calls.clear()
                spent = _seconds(run)
                times[name].append(spent / len(calls) - bare)
    base = statistics.median(times["torchdiffeq dopri5"])
    rows = []
    for name, spent in times.items():
        ratio = statistics.median(
            a / b for a, b in zip(spent, times["torchdiffeq dopri5"], strict=True)
        )
        bar = 1.0 if name == "dopri5" else None
        note = f"{1e6 * statistics.median(spent):.0f} µs an evaluation, theirs {1e6 * base:.0f}"
        rows.append(Row(f"overhead beside the terms, 128 × 64: {name}", ratio, bar, note))
        print(rows[-1], flush=True)
    return rows


def memory(steps: int = 256) -> list[Row]:
    """Measure what autograd keeps for 256 checkpointed steps, in units of one step."""
    torch.manual_seed(0)
    attention = Attention(64, 2)
    equation = Equation(diffusion=0.1, interaction=attention, reaction=FeedForward(64, 128))
    u0 = torch.randn(1, 128, 64)

    def kept(count: int, gradient: str) -> int:
        found: dict[int, int] = {}

        def pack(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            steps = {"rtol": 1e-5} if gradient == "adjoint" else {"substeps": count}
            method = "tsit5" if gradient == "adjoint" else "heun"
            path = simulate(equation, u0, (0.0, 2.0), method=method, gradient=gradient, **steps)
        del path
        return sum(found.values())

    with torch.enable_grad():
        one, whole, sparse = kept(1, "steps"), kept(steps, "steps"), kept(steps, "checkpoint")
        none = kept(0, "adjoint")
    piece = math.isqrt(steps) * one  # while a piece is differentiated, its own steps are there too
    rows = [
        Row(f"memory of {steps} checkpointed steps / one step", (sparse + piece) / one, 24.0,
            f"{(sparse + piece) / 2**20:.1f} MiB; all steps kept: {whole / 2**20:.0f} MiB"),
        Row("memory kept for the adjoint / one step", none / one, None,
            f"{none / 2**20:.2f} MiB, however many steps: the start and the weights"),
    ]  # fmt: skip
    print(*rows, sep="\n", flush=True)
    return rows


def diffrax_beside() -> list[Row]:
    """Print diffrax's Tsit5 on heat and attention at the same tolerance, where it is installed."""
    if importlib.util.find_spec("diffrax") is None:
        print("diffrax is not installed: its line is left out")
        return []
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    torch.manual_seed(0)
    u0, rows = torch.randn(1, 128, 16, dtype=torch.float64), []
    for alpha in (1.0, 20.0):
        equation = Equation(
            diffusion=alpha,
            interaction=lambda u: attention_weights(u, u, gain=0.25) @ u,
            stabilizer=Stabilizer(norm="none"),
        )
        exact = simulate(equation, u0, (0.0, 2.0), method="etd4_stiff", rtol=1e-11).final
        laplace = jnp.asarray(laplacian_matrix(128).numpy())

        def rate(t: object, u: Any, args: object, alpha: float = alpha, heat: Any = laplace) -> Any:
            return alpha * heat @ u + jax.nn.softmax(0.25 * u @ u.T, axis=-1) @ u

        found = diffrax.diffeqsolve(
            diffrax.ODETerm(rate), diffrax.Tsit5(), 0.0, 2.0, None, jnp.asarray(u0[0].numpy()),
            stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-9), max_steps=100_000,
        )  # fmt: skip
        theirs = 6 * int(found.stats["num_steps"]) + 1
        missed = distance(torch.tensor(found.ys[-1].tolist()).double()[None], exact)
        path = simulate(equation, u0, (0.0, 2.0), rtol=1e-6)
        ours = path.statistics.evaluations["interaction"]
        note = f"{ours} ({distance(path.final, exact):.1e}) against {theirs} ({missed:.1e}, Tsit5)"
        rows.append(Row(f"diffrax, diffusivity {alpha:g}, rtol 1e-6", ours / theirs, None, note))
        print(rows[-1], flush=True)
    return rows


def draw(file: Path) -> None:
    """Draw error against evaluations of attention, one panel a diffusivity."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels = figure.subplots(1, len(LADDERS), sharey=True, squeeze=False)[0]
    marks = dict(zip((*OURS, *(f"torchdiffeq {each}" for each in (*THEIRS, "rk4"))), "o^sDvPx+*1",
                     strict=True))  # fmt: skip
    for panel, (alpha, ladders) in zip(panels, LADDERS.items(), strict=True):
        for name, points in ladders.items():
            kept = [(n, e) for n, e in points if 1e-9 < e < 1]
            look = "--" if name.startswith("torchdiffeq") else "-"
            panel.plot(*zip(*kept, strict=True), look, marker=marks[name], label=name, markersize=5)
        panel.set(xscale="log", yscale="log", title=f"diffusivity {alpha:g}",
                  xlabel="evaluations of attention")  # fmt: skip
        low, high = panel.get_xlim()
        ticks = [each for each in TICKS if low <= each <= high]
        panel.set_xticks(ticks, [f"{each:,}" for each in ticks])
        panel.set_xticks([], minor=True)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=7, loc="lower left")
    panels[0].set_ylabel("relative error")
    figure.savefig(file, dpi=110)


def _seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit 1 if a bar is missed")
    parser.add_argument("--quick", action="store_true", help="leave the long parts out")
    parser.add_argument("--only", help="one part: 1, 20, 200, errors, …")
    parser.add_argument("--draw", metavar="FILE", type=Path, help="draw the ladders as a picture")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torchdiffeq") is None:
        print("torchdiffeq is not installed: pip install 'depthpde[peers]'", file=sys.stderr)
        return 2
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    parts: dict[str, Callable[[], list[Row]]] = {
        **{f"{alpha:g}": partial(evaluations, alpha) for alpha in BARS},
        "orders": orders,
        "errors": wanted_and_got,
        "overhead": overhead,
        "memory": memory,
        "diffrax": diffrax_beside,
    }
    if arguments.only and arguments.only not in parts:
        parser.error(f"--only must be one of {', '.join(parts)}, got {arguments.only!r}")
    left_out = {"200", "errors"} if arguments.quick else set()
    names = [arguments.only] if arguments.only else [name for name in parts if name not in left_out]
    with torch.no_grad():
        rows = [row for name in names for row in parts[name]()]
    if arguments.draw and LADDERS:
        draw(arguments.draw)
    missed = [row for row in rows if not row.passed]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} lines are within their bars")
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())

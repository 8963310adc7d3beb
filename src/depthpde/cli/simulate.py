"""``depthpde simulate``: a system of the gallery, computed, compared with theory, and drawn."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.simulator.system import Known, System
    from depthpde.simulator.work_precision import WorkPoint
    from depthpde.solvers.trajectory import Trajectory

SUMMARY = "simulate a named system, beside what theory says, as a table and a page"
EXAMPLES = """examples:
  depthpde simulate                                     list the systems
  depthpde simulate clustering
  depthpde simulate fisher --set diffusion=9 --out out/fisher
  depthpde simulate turing --work-precision
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="the system; left out: list them")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="another value for a parameter of the system (may be given again)",
    )
    parser.add_argument("--method", default="auto", help="how to integrate (default: auto)")
    parser.add_argument("--rtol", type=float, default=1e-6, help="relative error of a step")
    parser.add_argument(
        "--work-precision", action="store_true", help="compare every method: error against work"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("out/simulate"),
        help="where the page goes (default: out/simulate)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the record instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, compare, and write the page.

    Returns:
        0 if theory and computation agree, 1 if they do not.
    """
    from depthpde.errors import check_folder, check_name
    from depthpde.simulator.systems import SYSTEMS

    if arguments.name is None:
        for name, system in SYSTEMS.items():
            print(f"{name:16}{system.title}")
        return 0
    from depthpde.files import write_whole
    from depthpde.simulator.page import render_system
    from depthpde.simulator.simulate import simulate
    from depthpde.simulator.work_precision import work_precision

    system = SYSTEMS[check_name("NAME", arguments.name, SYSTEMS)].vary(**_settings(arguments.set))
    check_folder("--out", arguments.out)
    path = simulate(
        system.equation, system.u0, system.times, method=arguments.method, rtol=arguments.rtol
    )
    known = system.known(path)
    points: list[WorkPoint] = []
    if arguments.work_precision:
        points, _ = work_precision(system.equation, system.u0, system.times)
    page = arguments.out / f"{system.name}.html"
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(page, render_system(system, path, known, points))
    if arguments.json:
        json.dump(_record(system, path, known, points, page), sys.stdout, indent=2)
        print()
    else:
        _print(system, path, known, points)
        print(f"page   {page}")
    return 0 if all(each.agrees for each in known) else 1


def _settings(words: list[str]) -> dict[str, float]:
    settings = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            settings[name] = float(value)
        except ValueError:
            raise ValueError(
                f"`--set` must be KEY=VALUE with a number, got {word!r}; use --set beta=4"
            ) from None
    return settings


def _record(
    system: System,
    path: Trajectory,
    known: tuple[Known, ...],
    points: list[WorkPoint],
    page: Path,
) -> dict[str, object]:
    return {
        "system": system.name,
        "parameters": dict(system.parameters),
        "method": path.method,
        "status": path.status.value,
        "statistics": asdict(path.statistics),
        "known": [{**asdict(each), "agrees": each.agrees} for each in known],
        "work": [asdict(point) for point in points],
        "page": str(page),
    }


def _print(
    system: System, path: Trajectory, known: tuple[Known, ...], points: list[WorkPoint]
) -> None:
    statistics = path.statistics
    print(f"{system.name}: {system.title}")
    counts = ", ".join(f"{name} {count}" for name, count in statistics.evaluations.items())
    print(
        f"{path.method}, {statistics.steps} steps, {statistics.rejected} rejected; "
        f"evaluations: {counts}\n"
    )
    width = max(len(each.quantity) for each in known)
    print(f"{'known':{width}}  predicted   computed")
    for each in known:
        mark = "agrees" if each.agrees else "DIFFERS"
        print(f"{each.quantity:{width}}{each.predicted:>11.5g}{each.computed:>11.5g}  {mark}")
    if points:
        print(f"\n{'method':16}{'tolerance or steps':>20}{'evaluations':>13}{'error':>10}")
        for point in points:
            print(
                f"{point.method:16}{point.setting:>20g}{point.evaluations:>13}{point.error:>10.1e}"
            )
    print()

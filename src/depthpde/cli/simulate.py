"""``depthpde simulate``: a system of the gallery, computed, compared with theory, and drawn."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from depthpde.simulator.system import Known, System
    from depthpde.simulator.work_precision import WorkPoint
    from depthpde.solvers.trajectory import Trajectory

MOST_TOKENS = 128
"""Sites of a saved model's equation."""
SUMMARY = "simulate a named system, beside what theory says, as a table and a page"
EXAMPLES = """examples:
  depthpde simulate                                     list the systems
  depthpde simulate clustering
  depthpde simulate fisher --set diffusion=9 --out out/fisher
  depthpde simulate turing --work-precision
  depthpde simulate trained --checkpoint RUN --work-precision
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
    parser.add_argument(
        "--checkpoint",
        metavar="RUN",
        type=Path,
        help="for 'trained': folder of a run, or of one of our models (save_pretrained)",
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
    parser.add_argument(
        "--gif", action="store_true", help="write a moving picture too (extra depthpde[plot])"
    )
    parser.add_argument("--json", action="store_true", help="print the record instead of the table")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, compare, and write the page.

    Returns:
        0 if theory and computation agree, 1 if they do not.
    """
    from depthpde.errors import check_folder, check_name
    from depthpde.simulator.systems import BUILDERS, SYSTEMS

    if arguments.name is None:
        for name, build in BUILDERS.items():  # built, some would take a while
            print(f"{name:16}{(inspect.getdoc(build) or '').splitlines()[0]}")
        return 0
    import torch

    from depthpde.cli.reading_bar import time_bar
    from depthpde.files import write_whole
    from depthpde.simulator.animation import write_gif
    from depthpde.simulator.page import render_system
    from depthpde.simulator.simulate import simulate
    from depthpde.simulator.work_precision import work_precision

    check_name("NAME", arguments.name, SYSTEMS)
    settings = _settings(arguments.set)
    if arguments.checkpoint is None:
        system = SYSTEMS[arguments.name].vary(**settings)
    else:
        system = _of_checkpoint(arguments.name, arguments.checkpoint, settings)
    check_folder("--out", arguments.out)
    with torch.no_grad():
        path = simulate(
            system.equation,
            system.u0,
            system.times,
            method=arguments.method,
            rtol=arguments.rtol,
            progress=time_bar(sys.stderr, system.times[-1]),
        )
    known = system.known(path)
    points: list[WorkPoint] = []
    if arguments.work_precision:
        points, floor = work_precision(system.equation, system.u0, system.times)
        print(f"the exact solution is right to {floor:.1e}", file=sys.stderr)
    page = arguments.out / f"{system.name}.html"
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_whole(page, render_system(system, path, known, points))
    if arguments.gif:
        write_gif(system, path, page.with_suffix(".gif"))
    if arguments.json:
        json.dump(_record(system, path, known, points, page), sys.stdout, indent=2)
        print()
    else:
        _print(system, path, known, points)
        print(f"page   {page}")
    return 0 if all(each.agrees for each in known) else 1


def _of_checkpoint(name: str, folder: Path, settings: dict[str, float]) -> System:
    """Make the system of a saved model, which is shown sequences drawn at random."""
    import torch

    from depthpde.cli.subject import from_checkpoint
    from depthpde.models.pretrained import Pretrained
    from depthpde.seeds import generator
    from depthpde.simulator.trained import model_system

    if name != "trained" or settings:
        raise ValueError(
            f"`--checkpoint` must stand beside the system 'trained' without --set, got {name!r} "
            f"with {len(settings)} settings; use depthpde simulate trained --checkpoint RUN"
        )
    model, _ = from_checkpoint(folder)
    assert isinstance(model, Pretrained), "every one of ours is"
    vocabulary, length = model.config.vocabulary, model.config.length
    if vocabulary is None or length is None:
        raise ValueError(
            f"`--checkpoint` must be a model of tokens, got one of {type(model).__name__} without "
            "a vocabulary; use dp.model_system(model, inputs)"
        )
    shape, draw = (2, min(length, MOST_TOKENS)), generator(0, "simulate", "checkpoint")
    inputs = torch.randint(vocabulary, shape, generator=draw)
    title = f"The equation of the model in {folder.name}, shown tokens drawn at random."
    return model_system(model.double().eval().requires_grad_(False), inputs, title=title)


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

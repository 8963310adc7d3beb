"""A system as one self-contained page: what is known, what was computed, and how it moves.

No network, no library: pictures are drawn by a few lines of script from numbers in the page.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from depthpde.operators.energy import dirichlet_energy
from depthpde.pages.style import style_sheet
from depthpde.simulator.system import Known, System, View
from depthpde.simulator.work_precision import WorkPoint
from depthpde.solvers.clusters import count_clusters
from depthpde.solvers.trajectory import Trajectory

STYLE, SCRIPT = (Path(__file__).with_name(name) for name in ("page.css", "page.js"))
"""How a page looks, and what draws its pictures."""


def render_system(
    system: System, path: Trajectory, known: Sequence[Known], points: Sequence[WorkPoint] = ()
) -> str:
    """Write the page of a system.

    Args:
        system: Which.
        path: What was computed.
        known: What theory says beside it.
        points: A work–precision diagram, if one was made.
    """
    data = _data(system, path, points)
    numbers = json.dumps(data).replace("</", "<\\/")  # nothing in it may end the script
    statistics = path.statistics
    counts = ", ".join(f"{name} {count}" for name, count in statistics.evaluations.items())
    parameters = ", ".join(f"{name} = {value:g}" for name, value in system.parameters.items())
    figures = [_moving(data)] if data["frames"] else []
    if data["field"]:
        figures.append(_figure("field", 1000, 420, "First feature: time runs down, sites across."))
    for curve in data["curves"]:
        figures.append(_figure(curve["id"], 1000, 380, curve["caption"]))
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{html.escape(system.name)} · depthpde</title>
<style>{style_sheet(STYLE.read_text(encoding="utf-8"))}</style>
<h1>{html.escape(system.name)}</h1><p>{html.escape(system.title)} ({html.escape(parameters)})</p>
{_table(known)}
<p>{html.escape(path.method)}: {statistics.steps} steps, {statistics.rejected} rejected;
evaluations: {html.escape(counts)}. {html.escape(path.message)}</p>
{"".join(figures)}
<script type="application/json" id="data">{numbers}</script>
<script>{SCRIPT.read_text(encoding="utf-8")}</script></html>
"""


def _table(known: Sequence[Known]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(each.quantity)}</td><td>{each.predicted:.5g}</td>"
        f"<td>{each.computed:.5g}</td><td class={'ok' if each.agrees else 'off'}>"
        f"{'✓ agrees' if each.agrees else '✗ differs'}</td></tr>"
        for each in known
    )
    return (
        f"<table><tr><th>known</th><th>predicted</th><th>computed</th><th></th></tr>{rows}</table>"
    )


def _figure(name: str, width: int, height: int, caption: str) -> str:
    text = html.escape(caption)
    return (
        f'<figure><canvas id="{name}" width="{width}" height="{height}" role="img" '
        f'aria-label="{text}"></canvas><figcaption>{text}</figcaption></figure>'
    )


def _moving(data: dict[str, Any]) -> str:
    last = len(data["frames"]) - 1
    return (
        '<figure><canvas id="stage" width="700" height="420" role="img" aria-label="the field in '
        'motion"></canvas><figcaption><button id="play">Play</button> <input id="at" type="range" '
        f'min="0" max="{last}" value="0" aria-label="time"> <span id="t"></span>'
        "</figcaption></figure>"
    )


def _data(system: System, path: Trajectory, points: Sequence[WorkPoint]) -> dict[str, Any]:
    times = [round(float(t), 6) for t in path.times]
    first = path.states[:, 0].double()
    energy = [float(dirichlet_energy(state[None])) for state in first]
    curves: list[dict[str, Any]] = []
    if system.view is View.TOKENS:
        counts = [float(count_clusters(state[None], apart=0.05)) for state in first]
        curves.append(_curve("clusters", times, counts, ("time t (depth)", "clusters")))
    else:
        curves.append(_curve("energy", times, energy, ("time t (depth)", "Dirichlet energy")))
    if points:
        curves.append(_work_curve(points))
    frames: list[object] = []
    field: list[object] = []
    if system.view is View.TOKENS:
        frames = _rounded(_flattened(first))
    elif system.view is View.IMAGE:
        assert system.equation.grid is not None, "an image has a grid"
        frames = _rounded(first[:, :, 0].reshape(len(times), *system.equation.grid))
    else:
        field = _rounded(first[:, :, 0])
    low, high = float(first[..., 0].min()), float(first[..., 0].max())
    return {"times": times, "view": system.view.value, "frames": frames, "field": field,
            "range": [low, high], "curves": curves}  # fmt: skip


def _flattened(tokens: torch.Tensor) -> torch.Tensor:
    """Keep two or three coordinates; of more, those in which the start spreads most."""
    if tokens.shape[-1] <= 3:
        return tokens
    axes = torch.linalg.svd(tokens[0], full_matrices=False).Vh[:3]
    return tokens @ axes.mT


def _rounded(values: torch.Tensor) -> list[object]:
    found: list[object] = ((values * 1e4).round() / 1e4).tolist()
    return found


def _curve(name: str, x: list[float], y: list[float], names: tuple[str, str]) -> dict[str, Any]:
    return {"id": name, "series": [{"name": name, "x": x, "y": y}], "logs": [False, False],
            "names": names, "caption": f"{names[1]} over time."}  # fmt: skip


def _work_curve(points: Sequence[WorkPoint]) -> dict[str, Any]:
    series = []
    for method in dict.fromkeys(point.method for point in points):
        own = [p for p in points if p.method == method and p.evaluations and 0 < p.error < 1e3]
        if own:
            series.append({"name": method, "x": [p.evaluations for p in own],
                           "y": [p.error for p in own]})  # fmt: skip
    return {"id": "work", "series": series, "logs": [True, True],
            "names": ("evaluations of the dearest term", "relative error"),
            "caption": "Work against precision: lower left is better."}  # fmt: skip

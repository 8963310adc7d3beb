"""How long runs stay on a plateau: Kaplan–Meier curves as steps."""

from __future__ import annotations

from collections.abc import Mapping

from depthpde.pages.figures.curves import Line, curves
from depthpde.records.run_model import VariantRole
from depthpde.records.statistics.survival import SurvivalCurve


def survival(
    found: Mapping[str, SurvivalCurve],
    end: int,
    *,
    roles: Mapping[str, VariantRole | str],
    title: str,
    width: float = 480.0,
    height: float = 260.0,
) -> str:
    """Draw the share of runs still on a plateau, from the first update to the last.

    A curve falls at each escape and is level between: S(t) is the value at the last escape before
    t. It ends above 0 where runs never left.

    Args:
        found: Variant → curve.
        end: The last update of training.
        roles: Variant → role of its line, as in `curves`.
        title: What the figure is.
        width: In pixels.
        height: In pixels, without the names.

    Example:
        >>> curve = SurvivalCurve((100,), (0.5,), (0.1,), (0.9,))
        >>> survival({"a": curve}, 200, roles={}, title="plateau").count("<svg")
        1
    """
    lines = [
        Line(name=name, x=x, y=y, role=roles.get(name, VariantRole.OURS), title=_words(name, each))
        for name, each in found.items()
        for x, y in [steps(each, end)]
    ]
    return curves(
        lines,
        title=title,
        x_label="updates",
        y_label="share of runs still on the plateau",
        y_range=(-0.03, 1.05),
        width=width,
        height=height,
    )


def steps(curve: SurvivalCurve, end: int) -> tuple[list[float], list[float]]:
    """Return the corners of a curve's steps, from (0, 1) to the last update.

    Args:
        curve: Times of escapes and the share left after each.
        end: The last update of training.
    """
    x, y, share = [0.0], [1.0], 1.0
    for time, after in zip(curve.times, curve.staying, strict=True):
        x += [float(time), float(time)]
        y += [share, after]
        share = after
    return [*x, float(max(end, x[-1]))], [*y, share]


def _words(name: str, curve: SurvivalCurve) -> str:
    median = curve.median
    half = "fewer than half left" if median is None else f"half left by update {median}"
    return f"{name}: {half}"

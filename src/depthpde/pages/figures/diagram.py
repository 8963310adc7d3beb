"""The seven positions in a Transformer, each tinted by what diffusion does there: the page's map.

tokens → embedding ①→ [ ② norm → attention ③④ → ⑤ + → ② norm → feed-forward → ⑥ + ⑦ ] → classes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from depthpde.pages.formatting import plain, signed
from depthpde.pages.svg import drawing, element, group, line, path, text
from depthpde.records.run_model import POSITIONS

WIDTH, HEIGHT = 400.0, 474.0
STREAM = 46.0
"""Where the residual stream runs down."""
PLACES = {
    "after_embedding": (STREAM, 104.0),
    "before_norm": (98.0, 190.0),
    "in_attention": (208.0, 190.0),
    "in_heads": (264.0, 190.0),
    "after_attention": (322.0, 190.0),
    "after_ffn": (322.0, 318.0),
    "between_blocks": (STREAM, 400.0),
}
"""Position → where its disc is."""
RADIUS = 13.0
DEEPEST = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What diffusion does at one position."""

    mean: float
    """Mean difference from the baseline, in points."""
    low: float | None = None
    high: float | None = None
    title: str = ""
    href: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


def diagram(
    effects: Mapping[str, Effect], *, title: str = "Where diffusion was placed, and its effect"
) -> str:
    """Draw the Transformer with its seven positions, numbered in the order of the forward pass.

    Args:
        effects: Position → effect; positions without one are empty discs.
        title: What the figure is.
    """
    largest = max((abs(each.mean) for each in effects.values()), default=0.0) or 1.0
    discs = [
        _disc(number, position, effects.get(position), largest)
        for number, position in enumerate(POSITIONS, start=1)
    ]
    second = _empty_twin(effects.get("before_norm"), largest)
    described = "; ".join(
        f"{number} {plain(position)} {signed(effects[position].mean)}"
        if position in effects
        else f"{number} {plain(position)} not tried"
        for number, position in enumerate(POSITIONS, start=1)
    )
    return drawing(
        WIDTH,
        HEIGHT,
        _wires(),
        _boxes(),
        second,
        *discs,
        title=title,
        description=described,
        links=True,
    )


def _wires() -> str:
    parts = [path([(STREAM, 22), (STREAM, 450)], "flow"), _tip(STREAM, 450)]
    for y, back in ((190.0, 246.0), (318.0, 358.0)):
        loop = [(STREAM, y - 26), (72, y - 26), (72, y), (358, y), (358, back), (STREAM, back)]
        parts.append(path(loop, "flow"))
        parts += [
            element("circle", cx=STREAM, cy=back, r=8.0, kind="box"),
            line(STREAM - 5, back, STREAM + 5, back, "axis"),
            line(STREAM, back - 5, STREAM, back + 5, "axis"),
        ]
    return "".join(parts)


def _boxes() -> str:
    frame = element(
        "rect", x=10.0, y=136.0, width=380.0, height=290.0, rx=8.0, kind="axis",
        stroke_opacity=0.5, stroke_dasharray="4 4",
    )  # fmt: skip
    return "".join(
        (
            frame,
            text(384, 419, "block × depth", "tick", "end"),
            text(STREAM, 14, "tokens", "tick", "middle"),
            _box(6, 36, 80, 30, "embedding"),
            _box(118, 175, 48, 30, "norm"),
            _box(180, 148, 112, 80, "attention", 165),
            _box(118, 303, 48, 30, "norm"),
            _box(180, 303, 112, 30, "feed-forward"),
            text(STREAM + 4, 466, "pool → classes", "tick", "middle"),
        )
    )


def _box(x: float, y: float, width: float, height: float, words: str, at: float = 0.0) -> str:
    frame = element("rect", x=x, y=y, width=width, height=height, rx=4.0, kind="box")
    return frame + text(x + width / 2, at or y + height / 2 + 4, words, "on", "middle")


def _tip(x: float, y: float) -> str:
    return path([(x - 4, y - 6), (x + 4, y - 6), (x, y + 1)], "tip", closed=True)


def _circle(x: float, y: float, effect: Effect | None, largest: float) -> list[str]:
    """Draw a disc: tinted by the effect, with a heavy rim where its interval leaves out zero."""
    parts = [element("circle", cx=x, cy=y, r=RADIUS, kind="ground")]
    if effect is not None:
        kind = "up" if effect.mean > 0 else "down" if effect.mean < 0 else "none"
        depth = DEEPEST * min(abs(effect.mean) / largest, 1.0)
        parts.append(element("circle", cx=x, cy=y, r=RADIUS, kind=kind, fill_opacity=depth))
    rim = "clear" if effect is not None and effect.is_clear else "axis"
    return [*parts, element("circle", cx=x, cy=y, r=RADIUS, kind=rim)]


def _disc(number: int, position: str, effect: Effect | None, largest: float) -> str:
    x, y = PLACES[position]
    parts = _circle(x, y, effect, largest)
    parts.append(text(x, y + 4.5, str(number), "strong on", "middle"))
    value = "–" if effect is None else signed(effect.mean)
    aside = x == STREAM
    if aside:
        parts.append(text(x + 20, y + 4, f"{plain(position)}  {value}", "on"))
    else:
        parts.append(text(x, y + 29 if y < 300 else y - 19, value, "on", "middle"))
    words = effect.title if effect and effect.title else f"{plain(position)}: {value}"
    return group(*parts, title=words, href=effect.href if effect else "")


def _empty_twin(effect: Effect | None, largest: float) -> str:
    """Draw the second place of the second position: before the feed-forward's norm."""
    x, y = PLACES["before_norm"][0], PLACES["after_ffn"][1]
    parts = [*_circle(x, y, effect, largest), text(x, y + 4.5, "2", "strong on", "middle")]
    return group(*parts, title="before norm", href=effect.href if effect else "")

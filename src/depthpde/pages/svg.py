"""Small pieces that figures are made of: elements, scales, axes. Pure functions, text in and out.

A figure names what a shape is (``ours``, ``control``, ``baseline``, ``warning``), never a colour:
the page's style sheet colours it for light, dark and paper.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ROOT = "http://www.w3.org/2000/svg"
LETTER = 0.56
"""Mean width of a letter, in parts of the font's size; to leave room for labels."""
DIGIT = 0.65
"""Width of a digit: digits are all alike, and wider than most letters."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_UNSAFE = re.compile(_CONTROL.pattern[:-1] + "&<>\"']")


def escape(text: object) -> str:
    """Make text harmless in an element or an attribute; control characters are left out."""
    written = str(text)
    return html.escape(_CONTROL.sub(" ", written)) if _UNSAFE.search(written) else written


def number(value: float) -> str:
    """Write a coordinate: two digits at most, always the same for the same value."""
    short = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def element(tag: str, *content: str, **attributes: str | float | None) -> str:
    """Write an element; ``kind`` is its class, underscores in names are dashes, None is left out.

    Content is taken as it is: give text through `escape`.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value == "":
            continue
        name = "class" if key == "kind" else key.replace("_", "-")
        written_value = escape(value) if isinstance(value, str) else number(value)
        written.append(f' {name}="{written_value}"')
    inside = "".join(content)
    return f"<{tag}{''.join(written)}>{inside}</{tag}>" if inside else f"<{tag}{''.join(written)}/>"


def text(x: float, y: float, words: str, kind: str = "", anchor: str | None = None) -> str:
    """Write words at a place; anchor is ``middle`` or ``end`` where not the start."""
    return element("text", escape(words), x=x, y=y, kind=kind, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Draw a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, kind=kind)


def path(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> str:
    """Draw a line through points, or an area."""
    steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return element("path", d=f"M{steps}{'Z' if closed else ''}", kind=kind)


def group(*content: str, title: str = "", href: str = "", kind: str = "") -> str:
    """Put shapes together, with what a reader sees when pointing at them and where they lead."""
    inside = (element("title", escape(title)) if title else "", *content)
    if href:
        return element("a", *inside, href=href, kind=kind)
    return element("g", *inside, kind=kind)


def drawing(
    width: float,
    height: float,
    *content: str,
    title: str,
    description: str = "",
    links: bool = False,
) -> str:
    """Write a whole figure, which says in words what it shows.

    Args:
        width: In pixels, as drawn; a page may shrink it.
        height: The same.
        *content: Its elements.
        title: What it is, read aloud.
        description: What it shows, read aloud.
        links: Whether parts of it lead somewhere, so that it is no mere image.
    """
    return element(
        "svg",
        *content,
        xmlns=ROOT,
        kind="figure",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="group" if links else "img",
        aria_label=f"{title}. {description}".strip(),
    )


@dataclass(frozen=True, slots=True)
class AxisScale:
    """From numbers to pixels, linear or logarithmic.

        x = start + (f(v) − f(low)) / (f(high) − f(low)) · (end − start),    f = identity or log₁₀

    Args:
        low: The number at `start`; positive on a logarithmic scale.
        high: The number at `end`.
        start: In pixels.
        end: In pixels; may lie before `start`, as it does for heights.
        log: Whether equal ratios, not equal differences, are equally far apart.

    Example:
        >>> AxisScale(1.0, 100.0, 0.0, 10.0, log=True).at(10.0)
        5.0
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        if self.log and not self.low > 0:
            raise ValueError(
                f"`low` must be positive on a logarithmic scale, got {self.low:g}; "
                "leave out what has no logarithm"
            )

    def at(self, value: float) -> float:
        """Return where a number lies, kept inside the frame."""
        inside = min(max(value, self.low), self.high)
        low, high, share = self.low, self.high, inside
        if self.log:
            low, high, share = math.log10(low), math.log10(high), math.log10(inside)
        return self.start + (share - low) / ((high - low) or 1.0) * (self.end - self.start)

    def inside(self, value: float) -> bool:
        """Return whether a number lies inside the frame."""
        return self.low <= value <= self.high

    def ticks(self, about: int = 5) -> list[float]:
        """Return round numbers inside the frame, about so many."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        if self.log and self.high >= 10 * self.low:
            return _powers(self.low, self.high, about)
        rough = span / max(about, 1)
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(each for each in (1, 2, 2.5, 5, 10) if each * power >= rough * 0.999) * power
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def _powers(low: float, high: float, about: int) -> list[float]:
    """Return powers of ten, or 1, 2 and 5 of each where the powers alone would be too few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first) / max(about, 1)))
    digits = (1, 2, 5) if last - first <= 2 else (1,)
    found = [each * 10.0**power for power in range(first, last + 1) for each in digits]
    kept = [each for each in found if low * 0.999999 <= each <= high * 1.000001]
    return [each for each in kept if stride == 1 or round(math.log10(each)) % stride == 0]


def spell_tick(value: float) -> str:
    """Write a number on an axis: 0.25, −3, 1e−12."""
    mantissa, mark, exponent = f"{value:.6g}".partition("e")
    return f"{mantissa}{mark}{int(exponent) if mark else ''}".replace("-", "−")


def bottom_axis(
    scale: AxisScale, y: float, label: str = "", ticks: Mapping[float, str] | None = None
) -> str:
    """Draw an axis below a frame, with its numbers and what they are."""
    marks = ticks or {each: spell_tick(each) for each in scale.ticks()}
    parts = [line(scale.start, y, scale.end, y, "axis")]
    for value, words in marks.items():
        x = scale.at(value)
        parts += [line(x, y, x, y + 4, "axis"), text(x, y + 16, words, "tick", "middle")]
    if label:
        parts.append(text((scale.start + scale.end) / 2, y + 32, label, "tick", "middle"))
    return "".join(parts)


def left_axis(scale: AxisScale, x: float, right: float, label: str = "", about: int = 4) -> str:
    """Draw the numbers left of a frame, and faint lines across it."""
    parts = []
    for value in scale.ticks(about):
        y = scale.at(value)
        parts += [
            line(x, y, right, y, "grid"),
            text(x - 6, y + 4, spell_tick(value), "tick", "end"),
        ]
    if label:
        parts.append(text(0, min(scale.start, scale.end) - 8, label, "tick"))
    return "".join(parts)


def room_for(labels: Sequence[str], size: float = 13.0, letter: float = LETTER) -> float:
    """Return about how wide the longest label is.

    Args:
        labels: What is written.
        size: Of the font, in pixels.
        letter: Width of a letter in parts of the size; `DIGIT` for numbers.
    """
    return max((len(each) for each in labels), default=0) * letter * size


def shorten(label: str, most: int = 34) -> str:
    """Cut a label that would not fit."""
    return label if len(label) <= most else label[: most - 1] + "…"

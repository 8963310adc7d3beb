"""What the doctor left in a run's folder: verdicts as they came, and the last probe's measures.

``doctor.jsonl`` has one line a diagnosis: the update, condition → grade, the number that shows each
condition, the evidence for what is not healthy, every measure by depth, what was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from depthpde.pages.figures.bars import bars
from depthpde.pages.figures.curves import Line, curves
from depthpde.records.probes import WORDS, depth_curves, measured_bands, measured_transfer
from depthpde.records.record import Record
from depthpde.records.run_model import site_of
from depthpde.web.live import read_last, read_tail

DOCTOR, PROBE = "doctor.jsonl", "probe.json"
BANDS = ("low", "low-mid", "high-mid", "high")
UNMEASURED = "not measured"
LOOKS = {
    "healthy": ("✓", "good"),
    "watch": ("!", "busy"),
    "ill": ("✗", "bad"),
    UNMEASURED: ("·", "quiet"),
}
"""Grade → its sign and tone; any other word is shown as it is."""
MOST = 24
"""Figures by depth on one page."""


class ShownVerdict(NamedTuple):
    """One verdict as it is shown."""

    word: str
    sign: str
    tone: str
    about: str
    evidence: str


class DoctorEntry(NamedTuple):
    """The diagnosis after one update."""

    update: int | None
    verdicts: tuple[ShownVerdict, ...]
    values: Mapping[str, float] = {}
    """Condition → the number it is known by."""
    series: Mapping[str, list[float]] = {}
    """Measure → one number a depth."""

    @property
    def words(self) -> str:
        """Count the verdicts, such as "8 healthy, 1 watch"."""
        names = dict.fromkeys(each.word for each in self.verdicts)
        counts = ((sum(v.word == name for v in self.verdicts), name) for name in names)
        return ", ".join(f"{count} {name}" for count, name in counts)


NOTHING = DoctorEntry(None, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorView:
    """All that the doctor's page shows."""

    run: str
    name: str
    last: DoctorEntry
    history: tuple[DoctorEntry, ...]
    """Newest first."""
    depth: tuple[Markup, ...]
    """One figure for each measure by depth."""
    course: tuple[Markup, ...]
    """One figure for each condition over the training."""
    filters: tuple[Markup, ...]
    """What the diffusion layers do to frequencies."""


def draw_doctor(record: Record, name: str, doctor: Path | None, probe: Path | None) -> DoctorView:
    """Arrange what the doctor and the probe left for their page.

    Args:
        record: The run.
        name: What it is called.
        doctor: Its ``doctor.jsonl``, if it has one.
        probe: Its ``probe.json``, if it has one.
    """
    history = read_history(doctor)
    last = history[-1] if history else NOTHING
    return DoctorView(
        run=record.id,
        name=name,
        last=last,
        history=tuple(reversed(history[-50:])),
        depth=_depth(record if probe else None, last),
        course=_course(history),
        filters=_filters(record) if probe else (),
    )


def last_verdicts(path: Path | None) -> DoctorEntry:
    """Return the newest verdicts of a run."""
    found = read_last(path)
    return NOTHING if found is None else read_look(found) or NOTHING


def read_history(path: Path | None) -> list[DoctorEntry]:
    """Return every diagnosis of a run; lines of another form are left out."""
    looks = (read_look(line) for line in read_tail(path, 0).lines)
    return [look for look in looks if look is not None]


def read_look(line: Mapping[str, Any]) -> DoctorEntry | None:
    """Read the diagnosis after one update; None where a line has another form."""
    grades, values, evidence, series, missing = (
        _mapping(line.get(key))
        for key in ("verdicts", "values", "evidence", "series", "unmeasured")
    )
    if not grades:
        return None
    verdicts = []
    for condition, grade in grades.items():
        value = values.get(condition)
        known = f"{value:.3g}, not beyond its bounds".replace("-", "−") if _is_number(value) else ""
        sign, tone = LOOKS.get(str(grade), ("·", "quiet"))
        shown = str(evidence.get(condition, known))
        verdicts.append(ShownVerdict(str(grade), sign, tone, str(condition), shown))
    sign, tone = LOOKS[UNMEASURED]
    verdicts += [
        ShownVerdict(UNMEASURED, sign, tone, str(row), str(why)) for row, why in missing.items()
    ]
    at = line.get("update")
    return DoctorEntry(
        at if isinstance(at, int) else None,
        tuple(verdicts),
        {str(name): float(value) for name, value in values.items() if _is_number(value)},
        {str(name): list(each) for name, each in series.items() if _is_line(each)},
    )


def _course(history: list[DoctorEntry]) -> tuple[Markup, ...]:
    """Draw the number that each condition is known by over the training."""
    drawn = []
    for condition in dict.fromkeys(name for look in history for name in look.values):
        known = [
            (float(look.update), look.values[condition])
            for look in history
            if look.update is not None and condition in look.values
        ]
        if len(known) > 1:
            line = Line(name=condition, x=[x for x, _ in known], y=[y for _, y in known])
            figure = curves([line], title=f"{condition} over the training", x_label="update",
                            y_label=condition)  # fmt: skip
            drawn.append(Markup(figure))
    return tuple(drawn)


def _depth(record: Record | None, last: DoctorEntry) -> tuple[Markup, ...]:
    """Draw every measure by depth: those of the probe, and the doctor's last where it has none."""
    found: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for name, course in depth_curves([record]).items() if record is not None else ():
        found[name] = (course.updates, course.mean)
    if not found:
        found = {name: (range(len(each)), each) for name, each in last.series.items()}
    known = {name: each for name, each in found.items() if len(each[0]) > 1}
    order = [*(name for name in WORDS if name in known), *sorted(set(known) - set(WORDS))]
    return tuple(Markup(_by_depth(name, *known[name])) for name in order[:MOST])


def _by_depth(name: str, depths: Sequence[float], values: Sequence[float]) -> str:
    words = WORDS.get(name, name.replace(".", ", ").replace("_", " "))
    stride = max(1, len(depths) // 6)
    return curves(
        [Line(name=words, x=depths, y=values)],
        title=f"{words} by depth",
        x_label="depth in blocks",
        y_label=words,
        x_ticks={depth: f"{depth:g}" for depth in depths[::stride]},
    )


def _filters(record: Record) -> tuple[Markup, ...]:
    gains = [
        Line(name=_place(place), x=omega, y=gain)
        for place, (omega, gain) in measured_transfer([record]).items()
    ]
    drawn = []
    if gains:
        title, x_label = "What each frequency is multiplied with", "frequency ω, radians per site"
        drawn.append(curves(gains, title=title, x_label=x_label, y_label="H(ω), measured"))
    for place, shares in measured_bands([record]).items():
        title = f"Energy by frequency band, {_place(place)}"
        drawn.append(bars(BANDS, shares, title=title, y_label=_place(place)))
    return tuple(Markup(each) for each in drawn)


def _place(name: str) -> str:
    """Call a layer by its place in the model, where its name shows it."""
    site = site_of(name)
    return name if site is None else site.words


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_line(values: Any) -> bool:
    return isinstance(values, list) and len(values) > 1 and all(_is_number(v) for v in values)

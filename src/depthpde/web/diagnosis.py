"""What the doctor left in a run's folder: verdicts as they came, and the last probe's measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from depthpde.experiments.record import Record
from depthpde.report.figures.bars import bars
from depthpde.report.figures.curves import Line, curves
from depthpde.report.probes import WORDS, depth_courses, measured_bands, measured_transfer
from depthpde.web.live import read_tail

DOCTOR, PROBE = "doctor.jsonl", "probe.json"
BANDS = ("low", "low-mid", "high-mid", "high")
LOOKS = {
    "healthy": ("✓", "good"),
    "watch": ("!", "busy"),
    "ill": ("✗", "bad"),
    "not measured": ("·", "quiet"),
}
"""Verdict → its sign and tone; any other word is shown as it is."""


class Verdict(NamedTuple):
    """One verdict as it is shown."""

    word: str
    sign: str
    tone: str
    about: str
    evidence: str


class Look(NamedTuple):
    """What the doctor said after one update."""

    update: int | None
    verdicts: tuple[Verdict, ...]

    @property
    def words(self) -> str:
        """Count the verdicts, such as "8 healthy, 1 watch"."""
        names = dict.fromkeys(each.word for each in self.verdicts)
        counts = ((sum(v.word == name for v in self.verdicts), name) for name in names)
        return ", ".join(f"{count} {name}" for count, name in counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorView:
    """All that the doctor's page shows."""

    run: str
    name: str
    last: Look
    history: tuple[Look, ...]
    """Newest first."""
    depth: tuple[Markup, ...]
    """One figure for each measure by depth."""
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
    history = read_verdicts(doctor)
    return DoctorView(
        run=record.id,
        name=name,
        last=history[-1] if history else Look(None, ()),
        history=tuple(reversed(history[-50:])),
        depth=_depth(record) if probe else (),
        filters=_filters(record) if probe else (),
    )


def last_verdicts(path: Path | None) -> Look:
    """Return the newest verdicts of a run."""
    history = read_verdicts(path)
    return history[-1] if history else Look(None, ())


def read_verdicts(path: Path | None) -> list[Look]:
    """Return everything that the doctor said during a run; lines of another form are left out."""
    looks = []
    for line in read_tail(path, 0).lines:
        said, at = line.get("verdicts"), line.get("update")
        if isinstance(said, list):
            verdicts = tuple(_verdict(each) for each in said if isinstance(each, Mapping))
            looks.append(Look(at if isinstance(at, int) else None, verdicts))
    return looks


def _verdict(said: Mapping[str, Any]) -> Verdict:
    word, about, evidence = (
        str(next((said[key] for key in keys if said.get(key) is not None), ""))
        for keys in (("verdict", "level"), ("about", "illness"), ("evidence", "words"))
    )
    sign, tone = LOOKS.get(word, ("·", "quiet"))
    return Verdict(word, sign, tone, about, evidence)


def _depth(record: Record) -> tuple[Markup, ...]:
    return tuple(
        Markup(
            curves(
                [Line(name=name, x=course.updates, y=course.mean)],
                title=f"{WORDS.get(name, name)} by depth",
                x_label="depth in blocks",
                y_label=WORDS.get(name, name),
            )
        )
        for name, course in depth_courses([record]).items()
    )


def _filters(record: Record) -> tuple[Markup, ...]:
    gains = [
        Line(name=place, x=omega, y=gain)
        for place, (omega, gain) in measured_transfer([record]).items()
    ]
    drawn = []
    if gains:
        title, x_label = "What each frequency is multiplied with", "frequency ω, radians per site"
        drawn.append(curves(gains, title=title, x_label=x_label, y_label="H(ω), measured"))
    for place, said in measured_bands([record]).items():
        title = f"Energy by frequency band, {place}"
        drawn.append(bars(BANDS, said, title=title, y_label=place))
    return tuple(Markup(each) for each in drawn)

"""What the doctor left in a run's folder: verdicts as they came, and the last probe's measures."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from depthpde.web.live import read_tail

DOCTOR, PROBE = "doctor.jsonl", "probe.json"


class Verdict(NamedTuple):
    """One verdict as it is shown."""

    word: str
    sign: str
    tone: str
    about: str
    words: str


SIGNS = {"healthy": ("✓", "good"), "watch": ("!", "busy"), "ill": ("✗", "bad")}


def last_verdicts(path: Path | None) -> tuple[int | None, tuple[Verdict, ...]]:
    """Return the newest verdicts of a run and the update they are of."""
    lines = read_tail(path, 0).lines
    if not lines:
        return None, ()
    said = lines[-1]
    verdicts = said.get("verdicts")
    at = said.get("update")
    return (
        at if isinstance(at, int) else None,
        tuple(_verdict(each) for each in verdicts if isinstance(each, dict))
        if isinstance(verdicts, list)
        else (),
    )


def _verdict(said: dict[str, object]) -> Verdict:
    word = str(said.get("level", "not measured"))
    sign, tone = SIGNS.get(word, ("·", "quiet"))
    return Verdict(word, sign, tone, str(said.get("about", "")), str(said.get("words", "")))

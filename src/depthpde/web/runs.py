"""The page of one run: its state, its curves, the doctor's verdicts, where it was computed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from depthpde.pages.formatting import (
    format_bytes,
    format_number,
    format_seconds,
    format_size,
    plain,
)
from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.index.entry import Snapshot
from depthpde.records.index.index import Index
from depthpde.records.protocols.steps import stage_of
from depthpde.records.record import METRICS, Record, State
from depthpde.records.run_model import site_of
from depthpde.web.diagnosis import DOCTOR, PROBE, last_verdicts
from depthpde.web.diagnosis import DoctorEntry as Doctor
from depthpde.web.live import ServerEvent, read_tail, thin
from depthpde.web.states import STATE_BADGES, StateBadge, run_name

Facts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """All that the page of a run shows, but for the curves."""

    run: str
    name: str
    look: StateBadge
    update: int
    updates: int
    error: str
    retry: str
    """The command that tries a failed run again; empty for any other."""
    grids: tuple[str, ...]
    """Grids that ask for this run."""
    trivial: tuple[dict[str, Any], ...]
    """Lines that need no learning: name and percent."""
    doctor: Doctor
    """The doctor's newest verdicts."""
    has_probe: bool
    result: Facts
    environment: Facts
    config: str


def draw_run(index: Index, snapshot: Snapshot, record: Record) -> RunView:
    """Arrange a record for its page."""
    entry, result = snapshot.entries[record.id], record.result
    return RunView(
        run=record.id,
        name=run_name(snapshot, record.id),
        look=STATE_BADGES[snapshot.states[record.id]],
        update=entry.update,
        updates=entry.updates,
        error=entry.error,
        retry=_retry(snapshot, record) if snapshot.states[record.id] is State.FAILED else "",
        grids=tuple(
            name
            for name, grid in snapshot.grids.items()
            if any(cell.run == record.id for cell in grid.cells)
        ),
        trivial=_trivial(result),
        doctor=last_verdicts(index.file(record.id, DOCTOR)),
        has_probe=any(index.file(record.id, name) for name in (PROBE, DOCTOR)),
        result=() if result is None else (*_result(result), _checksums(record)),
        environment=_environment(record.environment),
        config=json.dumps(record.config, indent=1, ensure_ascii=False),
    )


class Curves:
    """What is new in a run's metrics since the last look, as events.

    Args:
        index: The index that knows the run.
        run: Its id.
        last_id: How far a page that was cut off had read; empty for the start.
    """

    def __init__(self, index: Index, run: str, last_id: str = "") -> None:
        self.index, self.run = index, run
        self.offset = int(last_id) if last_id.isascii() and last_id.isdigit() else 0
        self.first = self.offset == 0

    def look(self) -> list[ServerEvent]:
        """Return the new lines: nothing, one event, or a fresh start and one event."""
        path = self.index.file(self.run, METRICS)
        tail = read_tail(path, self.offset)
        again = self.first or tail.offset < self.offset
        self.offset, self.first = tail.offset, False
        if not tail.lines:
            return [ServerEvent("restart", {})] if again else []
        points = thin([each for each in tail.lines if each.get("kind") == "point"])
        others = [_named(each) for each in tail.lines if each.get("kind") == "validation"]
        event = ServerEvent("metrics", [*points, *others], str(self.offset))
        return [ServerEvent("restart", {}), event] if again else [event]


def _named(validation: dict[str, Any]) -> dict[str, Any]:
    """Call the learned ratios by their places in the model."""
    ratios = validation.get("ratios")
    if not isinstance(ratios, Mapping):
        return validation | {"ratios": {}}
    sites = {str(name): site_of(str(name)) for name in ratios}
    words = {name: name if site is None else site.words for name, site in sites.items()}
    return validation | {"ratios": {words[str(name)]: each for name, each in ratios.items()}}


def _trivial(result: Mapping[str, Any] | None) -> tuple[dict[str, Any], ...]:
    lines = (result or {}).get("trivial")
    if not isinstance(lines, Mapping):
        return ()
    return tuple(
        {"name": str(name), "y": float(line)}
        for name, line in lines.items()
        if isinstance(line, int | float)
    )


def _result(result: Mapping[str, Any]) -> Facts:
    """Return the result line by line; what a record lacks is left out."""
    facts: list[tuple[str, str]] = [("state", STATE_BADGES[State(result["status"])].words)]
    for split in ("test", "validation"):
        found = result.get(split)
        if isinstance(found, Mapping) and isinstance(found.get("accuracy"), int | float):
            facts.append((f"{split} accuracy", f"{format_number(float(found['accuracy']), 2)} %"))
    for name, line in ((each["name"], each["y"]) for each in _trivial(result)):
        facts.append((f"without learning: {plain(name)}", f"{format_number(line)} %"))
    for key, words, write in (
        ("seconds", "time", format_seconds),
        ("parameters", "parameters", format_size),
        ("tokens_per_second", "tokens a second", format_size),
        ("peak_memory_bytes", "peak memory", format_bytes),
    ):
        if isinstance(result.get(key), int | float):
            facts.append((words, write(float(result[key]))))
    facts += [("note", str(each)) for each in result.get("notes") or ()]
    return tuple(facts)


def _checksums(record: Record) -> tuple[str, str]:
    if record.checked:
        return ("checksums", "of every file, checked by depthpde verify")
    return ("checksums", "none: recorded before records had checksums")


def _retry(snapshot: Snapshot, record: Record) -> str:
    """Return the command that tries a failed run again."""
    results = shlex.quote(str(record.folder.parents[1].name))
    grid = snapshot.places.get(record.id, ("", ""))[0]
    if not grid:
        return f"depthpde train {shlex.quote(record.task)} … --out {results}"
    name = (stage_of(grid) or (grid,))[0]
    known = shlex.quote(name) if name in EXPERIMENTS else "FILE.yaml"
    return f"depthpde sweep {known} --out {results} --retry-failed"


def _environment(environment: Mapping[str, Any]) -> Facts:
    """Flatten what is known of machine and versions."""
    facts = []
    for name, value in environment.items():
        if isinstance(value, Mapping):
            text = ", ".join(f"{key} {each}" for key, each in value.items() if each is not None)
        else:
            text = "" if value is None else str(value)
        if text:
            facts.append((plain(str(name)), text))
    return tuple(facts)

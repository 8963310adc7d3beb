"""What is known of runs: plain files, one folder a run, readable without torch.

    RESULTS/runs/ID/    config.json · environment.json · status.json · metrics.jsonl
                        result.json (last) · predictions.u8 · doctor.jsonl, probe.json (optional)
    RESULTS/grids/      NAME.json: which runs answer one question, and what they are called there

The folder's name is the SHA-256 of the config: the same config is the same run, whoever made it,
so the folders of several machines can simply be copied together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from depthpde.files import LARGEST, parse_json, parse_json_lines, read_plain, write_json
from depthpde.records.integrity import checksums, shape

T = TypeVar("T")
FORMAT = 1
RUNS, GRIDS = "runs", "grids"
CONFIG, ENVIRONMENT, STATUS = "config.json", "environment.json", "status.json"
METRICS, RESULT, PREDICTIONS = "metrics.jsonl", "result.json", "predictions.u8"
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, OSError)
"""What reading somebody's file may raise; every reader of many catches it for each of them."""
LOST_AFTER = 120.0
"""Seconds without a heartbeat after which a running run counts as lost."""


class State(StrEnum):
    """How a run stands."""

    PENDING = "pending"
    """Nothing has been done."""
    RUNNING = "running"
    LOST = "lost"
    """Marked as running, but without a heartbeat; or marked as done, but without a result. The
    next sweep computes it."""
    INTERRUPTED = "interrupted"
    """Stopped by a signal, saved; the next sweep resumes it."""
    FAILED = "failed"
    """Ended by an error, which the status tells."""
    DONE = "done"
    STOPPED = "stopped"
    """Done, ended early because validation no longer got better."""
    DIVERGED = "diverged"
    """Done: the loss left its bound, which is a result."""


FINISHED = frozenset({State.DONE, State.STOPPED, State.DIVERGED})
"""The states of a run that has a result."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A folder or file that is no record."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What a part of a record holds, or why it holds nothing."""

    value: T
    """Empty where the part is not there, or broken."""
    broken: Broken | None = None
    """None where the part was read, or is not there."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run, as its folder tells it."""

    folder: Path
    id: str
    """First 16 digits of the SHA-256 of the config."""
    label: str
    """What the run is called by itself; a grid may call it otherwise."""
    config: Mapping[str, Any]
    """Task, protocol, seed, model, training …, resolved."""
    status: Mapping[str, Any]
    """State, update, heartbeat, error."""
    environment: Mapping[str, Any]
    """Versions, commit, machine, threads."""
    result: Mapping[str, Any] | None
    """None until the run has finished."""
    kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Files that were parsed already; see `keep`."""
    stored: dict[str, Callable[[], Any]] = field(default_factory=dict, compare=False, repr=False)
    """Where an index has what such a file holds."""

    def keep(self, name: str, read: Callable[[], T]) -> T:
        """Read a part of the record once; while the run goes on, whenever it is asked for.

        Args:
            name: Of the part.
            read: Parses its file.
        """
        if self.result is None:
            return read()
        if name not in self.kept:
            self.kept[name] = self.stored.get(name, read)()
        found: T = self.kept[name]
        return found

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.config["task"])

    @property
    def seed(self) -> int:
        """The seed of everything random in it."""
        return int(self.config["seed"])

    @property
    def state(self) -> State:
        """How the run stands now."""
        if self.result is not None:
            return State(self.result["status"])
        state = State(self.status.get("state", State.PENDING))
        beat = float(self.status.get("heartbeat", 0.0))
        silent = state is State.RUNNING and time.time() - beat > LOST_AFTER
        return State.LOST if silent or state in FINISHED else state

    @property
    def checked(self) -> bool:
        """Whether a finished record carries checksums; those made before 0.3 do not."""
        return self.result is not None and checksums.KEY in self.result

    @property
    def accuracy(self) -> float | None:
        """Test accuracy in percent; None where there is none."""
        if self.result is None or self.result.get("test") is None:
            return None
        return float(self.result["test"]["accuracy"])

    def points(self) -> list[dict[str, Any]]:
        """Return the training curve, or raise naming which line of it cannot be read."""
        return [each for each in self._metrics() if each["kind"] == "point"]

    def validations(self) -> list[dict[str, Any]]:
        """Return the looks at the validation split."""
        return [e for e in self._metrics('"validation"') if e["kind"] == "validation"]

    def predictions(self) -> NDArray[np.uint8] | None:
        """Return the predicted class of each test example, in the split's order; None without."""
        if not (self.folder / PREDICTIONS).exists():
            return None
        values = self.content(PREDICTIONS)
        test = (self.result or {}).get("test") or {}
        checksums.check_count(self.folder / PREDICTIONS, test, values)
        return np.frombuffer(values, dtype=np.uint8)

    def content(self, name: str, limit: int = LARGEST) -> bytes:
        """Return the bytes of a file of the run; of a finished one, as it was written.

        Args:
            name: Inside the run's folder.
            limit: Most bytes it may have.
        """
        values = read_plain(f"{self.folder}/{name}", limit)
        checksums.check_file(self.folder, name, self.result, values)
        return values

    def _metrics(self, wanted: str = "") -> Iterator[dict[str, Any]]:
        if not os.path.exists(f"{self.folder}/{METRICS}"):
            return
        lines = self.content(METRICS).decode("utf-8").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines.pop()  # a line that is being written is not yet there
        sealed = wanted and METRICS in checksums.sealed_files(self.result)  # no line is broken
        entries = parse_json_lines([line for line in lines if wanted in line] if sealed else lines)
        if entries is not None and all(type(e) is dict and "kind" in e for e in entries):
            yield from entries
            return
        for number, line in enumerate(lines, start=1):
            yield _parse_line(line, f"{self.folder / METRICS}, line {number},")


@dataclass(frozen=True, slots=True)
class Records:
    """All runs of a results folder, read from their files."""

    found: dict[str, Record] = field(default_factory=dict)
    """Id → record, sorted by id."""
    broken: list[Broken] = field(default_factory=list)
    """What could not be read, and why."""


class Cell(NamedTuple):
    """One run's place in a grid."""

    task: str
    variant: str
    seed: int
    run: str
    """Id of the run."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Which runs answer one question."""

    name: str
    question: str
    baseline: str
    """The variant that the others are compared with."""
    cells: tuple[Cell, ...]
    variants: dict[str, dict[str, Any]]
    """Label → ``words``: what it is, in words; and what else a report may want to know."""

    def to_dict(self) -> dict[str, Any]:
        """Return the grid as plain JSON values."""
        return {
            "format": FORMAT,
            "name": self.name,
            "question": self.question,
            "baseline": self.baseline,
            "variants": self.variants,
            "cells": [cell._asdict() for cell in self.cells],
        }


@dataclass(frozen=True, slots=True)
class Grids:
    """All grids of a results folder."""

    found: dict[Path, Grid] = field(default_factory=dict)
    """File → grid, sorted by file."""
    broken: list[Broken] = field(default_factory=list)
    """What could not be read, and why."""

    @property
    def by_name(self) -> dict[str, Grid]:
        """Name → grid."""
        return {grid.name: grid for grid in self.found.values()}


def run_folder(results: Path, run: str) -> Path:
    """Return where a run lies."""
    return results / RUNS / run


def is_recorded(results: Path, run: str) -> bool:
    """Return whether a run has a result."""
    return (run_folder(results, run) / RESULT).is_file()


def read_record(folder: Path, texts: dict[str, bytes] | None = None) -> Record:
    """Return the record in a folder, or say why there is none; `texts` takes up its files."""
    values = _read(f"{folder}/{CONFIG}", _again(folder), texts)
    if values.get("format") != FORMAT:
        raise ValueError(
            f"{folder / CONFIG} must be of format {FORMAT}, got {values.get('format')!r}; "
            "read it with the version of depthpde that wrote it"
        )
    config, again = values.get("config"), _again(folder)
    if not isinstance(config, dict) or not {"task", "seed"} <= config.keys():
        raise ValueError(f"{folder / CONFIG} must hold a config with a task and a seed")
    if not isinstance(config["task"], str) or type(config["seed"]) is not int:
        raise ValueError(
            f"{folder / CONFIG} must name a task and number a seed, got {config['task']!r} and "
            f"{config['seed']!r}"
        )
    if values.get("id") != folder.name:
        raise ValueError(
            f"{folder} must hold the run of its name, got {values.get('id')!r}; rename the folder"
        )
    # The status first: it says "done" after the result is there, so the reverse means it is gone.
    status, environment, result = (
        _read(path, again, texts) if os.path.exists(path) else None
        for path in (f"{folder}/{name}" for name in (STATUS, ENVIRONMENT, RESULT))
    )
    status, environment = status or {}, environment or {}
    if result is not None:
        _check_result(folder / RESULT, result)
    if status.get("state", State.PENDING) not in list(State):
        raise ValueError(f"{folder / STATUS} must tell a state, got {status['state']!r}; {again}")
    if wrong := shape.misshapen(status, shape.STATUS):
        raise ValueError(f"{folder / STATUS}: {wrong}; {again}")
    label = str(values.get("label", folder.name))
    return Record(folder, folder.name, label, config, status, environment, result)


def _check_result(path: Path, result: dict[str, Any]) -> None:
    """Refuse a result that others could not count with."""
    again = _again(path.parent)
    if result.get("format") != FORMAT or result.get("status") not in FINISHED:
        raise ValueError(f"{path} must be a result of format {FORMAT}; {again}")
    checksums.check_numbers(path, result)
    checksums.check_sizes(path.parent, result)
    wrong, test = shape.misshapen(result, shape.RESULT), result.get("test")
    if not wrong and test is not None:
        accuracy: Any = test.get("accuracy") if isinstance(test, dict) else None
        if not shape.is_number(accuracy) or not 0 <= accuracy <= 100:
            wrong = f"a test accuracy must be in percent, got {accuracy!r}"
        else:
            wrong = shape.miscounted(test)
    if wrong:
        raise ValueError(f"{path}: {wrong}; {again}")
    checksums.check_count(path.parent / PREDICTIONS, test or {})


def read_records(results: Path) -> Records:
    """Return every run of a results folder; one that cannot be read never hides the others."""
    records = Records()
    for folder in sorted(_folders(results / RUNS)):
        try:
            records.found[folder.name] = read_record(folder)
        except UNREADABLE as error:
            records.broken.append(Broken(folder, str(error)))
    return records


def read_grid(path: Path) -> Grid:
    """Return the grid that a file holds, or raise with the reason why it holds none."""
    values = _read(path, "move it away and the same sweep writes it again")
    if values.get("format") != FORMAT:
        raise ValueError(f"{path} must be of format {FORMAT}, got {values.get('format')!r}")
    try:
        cells = tuple(
            Cell(str(c["task"]), str(c["variant"]), int(c["seed"]), str(c["run"]))
            for c in values["cells"]
        )
        variants = {str(label): dict(each) for label, each in values["variants"].items()}
        name, question, baseline = (str(values[key]) for key in ("name", "question", "baseline"))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} must be a grid, but {error!r}; write it again") from error
    return Grid(name, question, baseline, cells, variants)


def read_grids(results: Path) -> Grids:
    """Return the grids of a results folder; a file that is none never hides the others."""
    grids = Grids()
    for path in sorted((results / GRIDS).glob("*.json")):
        try:
            grids.found[path] = read_grid(path)
        except UNREADABLE as error:
            grids.broken.append(Broken(path, str(error)))
    return grids


def write_grid(results: Path, grid: Grid) -> Path:
    """Write a grid into a results folder."""
    folder = results / GRIDS
    folder.mkdir(parents=True, exist_ok=True)
    return write_json(folder / f"{grid.name}.json", grid.to_dict())


def _folders(place: Path) -> list[Path]:
    if not place.is_dir():
        return []
    return [each for each in place.iterdir() if each.is_dir() and not each.name.startswith(".")]


def _again(folder: Path) -> str:
    """Describe what to do about a run whose record is not whole."""
    return f"move {folder} away and the same command computes it again"


def _parse_line(line: str, place: str) -> dict[str, Any]:
    """Return one entry of a curve, or raise with the reason why the line is none."""
    try:
        values = parse_json(line, constants=True)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} must be JSON, but {error}; remove the line") from error
    if not isinstance(values, dict) or "kind" not in values:
        raise ValueError(
            f"{place} must be an object with a kind, got {line.strip()[:60]}; remove the line"
        )
    return values


def _read(path: Path | str, advice: str, texts: dict[str, bytes] | None = None) -> dict[str, Any]:
    try:
        content = read_plain(path)
        values = parse_json(content)
        if texts is not None:
            texts[os.path.basename(path)] = content
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; the folder is not a whole record") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} must be JSON, but {error}; it was not written whole: {advice}"
        ) from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold an object, got {type(values).__name__}; {advice}")
    return values

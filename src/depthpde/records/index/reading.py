"""One run: from its files to a row of the index, and from such a row to its whole record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from depthpde.files import local_names
from depthpde.records.index.entry import RunEntry, summarize
from depthpde.records.index.folders import Signature, run_signature
from depthpde.records.index.store import IndexRow
from depthpde.records.learning_curves import parse_validations, read_validations
from depthpde.records.probes import PROBE, parse_probe, read_probe
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
    FINISHED,
    METRICS,
    RESULT,
    STATUS,
    UNREADABLE,
    Broken,
    Reading,
    Record,
    read_record,
)


def read_row(folder: Path, signature: Signature, refused: str = "") -> IndexRow:
    """Read one run; what changed while it was read is read again by the next look.

    Args:
        folder: The run's folder.
        signature: What its files looked like just before.
        refused: Why it must not be read; empty where it may.
    """
    root = folder.parents[1]
    try:
        if refused:
            raise ValueError(refused)
        texts: dict[str, bytes] = {}
        record = read_record(folder, texts)
        entry = summarize(record)
        parts: tuple[tuple[str, str], ...] = ()
        stored = curve = probe = None
        if record.result is not None:
            stored = _joined(texts)
            validations, measures = parse_validations(record), parse_probe(record, texts)
            parts = _name_faults((validations.broken, measures.broken), root)
            curve = json.dumps(validations.value).encode()
            probe = texts.get(PROBE, b"{}")
    except UNREADABLE as error:
        return IndexRow(folder.name, signature, None, local_names(str(error), root))
    if run_signature(str(folder)) != signature:
        signature = ""
    return IndexRow(folder.name, signature, entry, "", parts, stored, curve, probe)


class LazyConfig(Mapping[str, Any]):
    """The config of a run, read when anything but its task and seed is asked for.

    Args:
        entry: Of the run.
        read: Returns the config.
    """

    def __init__(self, entry: RunEntry, read: Callable[[], Mapping[str, Any]]) -> None:
        self._entry, self._read = entry, read
        self._all: Mapping[str, Any] | None = None

    def __getitem__(self, key: str) -> Any:
        if key in ("task", "seed"):
            return self._entry.task if key == "task" else self._entry.seed
        return self._whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def _whole(self) -> Mapping[str, Any]:
        if self._all is None:
            self._all = self._read()
        return self._all


def make_summary(entry: RunEntry, folder: Path, config: Callable[[], Mapping[str, Any]]) -> Record:
    """Make a record of an entry alone: its scores and trivial lines are the whole of its result.

    Args:
        entry: Of the run.
        folder: Where the run lies.
        config: Reads its config, when it is first asked for.
    """
    test = None
    if entry.accuracy is not None:
        test = {"accuracy": entry.accuracy, "loss": entry.loss, "targets": entry.targets}
    result = {"status": entry.state.value, "test": test, "trivial": entry.trivial}
    return Record(
        folder=folder,
        id=entry.id,
        label=entry.label,
        config=LazyConfig(entry, config),
        status={"state": entry.state.value},
        environment={},
        result=result if entry.state in FINISHED else None,
    )


def make_record(row: IndexRow, folder: Path, stored: Any) -> Record:
    """Make a record of what the index kept of it; `keep_parts` adds its curve and its probe.

    Args:
        row: Of the run.
        folder: Where the run lies.
        stored: The values of its record, of `Store.files`.
    """
    return Record(
        folder=folder,
        id=row.id,
        label=str(stored[CONFIG].get("label", row.id)),
        config=stored[CONFIG]["config"],
        status=stored.get(STATUS, {}),
        environment=stored.get(ENVIRONMENT, {}),
        result=stored[RESULT],
    )


def keep_parts(
    record: Record, row: IndexRow, curve: Callable[[], Any], probe: Callable[[], Any]
) -> Record:
    """Let a finished record read its curve and probe from the index, and where it cannot, files.

    Args:
        record: Of the run.
        row: The same.
        curve: Returns what `Store.curve` does.
        probe: Returns what `Store.probe` does.
    """
    found = dict(row.parts)

    def reading(name: str, value: Any) -> Reading[Any]:
        return Reading(value, Broken(record.folder / name, found[name]) if name in found else None)

    def read_curve() -> Reading[Any]:
        points = curve()
        if points is None:
            return parse_validations(record)
        return reading(METRICS, [(int(u), float(a)) for u, a in points])

    def read_measures() -> Reading[Any]:
        measures = probe()
        return parse_probe(record) if measures is None else reading(PROBE, measures)

    record.stored.update({METRICS: read_curve, PROBE: read_measures})
    return record


def faults(record: Record) -> tuple[tuple[str, str], ...]:
    """Name the files of a record that cannot be read, and why."""
    parts = (read_validations(record).broken, read_probe(record).broken)
    return _name_faults(parts, record.folder.parents[1])


def _name_faults(parts: Iterable[Broken | None], root: Path) -> tuple[tuple[str, str], ...]:
    return tuple((each.path.name, local_names(each.reason, root)) for each in parts if each)


def _joined(texts: Mapping[str, bytes]) -> bytes:
    """Return the files of a finished record as one JSON text."""
    parts = (f'"{name}":{text.decode("utf-8-sig")}' for name, text in texts.items())
    return f"{{{','.join(parts)}}}".encode()

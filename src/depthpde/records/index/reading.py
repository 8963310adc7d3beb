"""One run: from its files to a row of the index, and from such a row to its whole record."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from depthpde.files import read_plain
from depthpde.records.index.entry import summarize
from depthpde.records.index.folders import Signature, run_signature
from depthpde.records.index.store import IndexRow
from depthpde.records.learning_curves import read_validations
from depthpde.records.probes import PROBE, read_probe
from depthpde.records.record import (
    CONFIG,
    ENVIRONMENT,
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
        record = read_record(folder)
        entry = summarize(record)
        parts: tuple[tuple[str, str], ...] = ()
        said = probe = None
        if record.result is not None:
            parts = faults(record)
            said = _files(folder, read_validations(record).value)
            probe = read_plain(folder / PROBE) if read_probe(record).value else None
    except UNREADABLE as error:
        return IndexRow(folder.name, signature, None, local(str(error), root))
    if run_signature(str(folder)) != signature:
        signature = ""
    return IndexRow(folder.name, signature, entry, "", parts, said, probe)


def make_record(row: IndexRow, folder: Path, said: Any, read: Callable[[], Any]) -> Record:
    """Make a record of what the index kept of it.

    Args:
        row: Of the run.
        folder: Where the run lies.
        said: What `Store.record` returned.
        read: Returns what `Store.probe` does, when it is first asked for.
    """
    record = Record(
        folder=folder,
        id=row.id,
        label=str(said[CONFIG].get("label", row.id)),
        config=said[CONFIG]["config"],
        status=said.get(STATUS, {}),
        environment=said.get(ENVIRONMENT, {}),
        result=said[RESULT],
    )
    found = dict(row.parts)

    def reading(name: str, value: Any) -> Reading[Any]:
        return Reading(value, Broken(folder / name, found[name]) if name in found else None)

    record.kept[METRICS] = reading(METRICS, [(int(u), float(a)) for u, a in said["curve"]])
    record.stored[PROBE] = lambda: reading(PROBE, read() or {})
    return record


def faults(record: Record) -> tuple[tuple[str, str], ...]:
    """Name the files of a record that cannot be read, and why."""
    root = record.folder.parents[1]
    parts = (read_validations(record).broken, read_probe(record).broken)
    return tuple((each.path.name, local(each.reason, root)) for each in parts if each)


def local(reason: str, root: Path) -> str:
    """Name files from the results folder on: where that lies is nobody's business."""
    return reason.replace(f"{root}{os.sep}", "")


def _files(folder: Path, curve: list[tuple[int, float]]) -> bytes:
    """Return the files of a finished record as one JSON text, and its curve as it was parsed."""
    parts = [f'"curve":{json.dumps(curve)}']
    for name in (CONFIG, ENVIRONMENT, STATUS, RESULT):
        if (folder / name).exists():
            parts.append(f'"{name}":{read_plain(folder / name).decode("utf-8-sig")}')
    return f"{{{','.join(parts)}}}".encode()

"""What of two records of one run must be the same to the byte, wherever each was computed."""

from __future__ import annotations

import json
from pathlib import Path

from depthpde.records.record import State, read_record

OWN = {"status.json", "environment.json", "result.json"}
"""Files that tell of the attempt, its machine and its time; of the result the rest is compared."""
TIMES = {"seconds", "checksums", "tokens_per_second", "peak_memory_bytes"}
"""What of a result tells of the machine and the time."""


def contents(folder: Path) -> dict[str, bytes]:
    """Return what of a record must be the same: its files, and its result without the times."""
    found = {
        str(each.relative_to(folder)): each.read_bytes()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.name not in OWN and each.name != ".lock"
    }
    result = read_record(folder).result or {}
    lasting = {name: value for name, value in result.items() if name not in TIMES}
    return found | {"result.json": json.dumps(lasting, sort_keys=True).encode()}


def difference(folder: Path, want: dict[str, bytes]) -> str:
    """Say what of a record is not as wanted; empty where all is."""
    record = read_record(folder)
    if record.state is not State.DONE:
        return f"it ended as {record.state.value}"
    got = contents(folder)
    return ", ".join(
        name for name in sorted(got.keys() | want.keys()) if got.get(name) != want.get(name)
    )

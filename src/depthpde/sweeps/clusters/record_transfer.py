"""A record on its way between machines that share no file system."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from depthpde.files import write_whole
from depthpde.records.record import CONFIG, ENVIRONMENT, METRICS, RESULT, STATUS

LIVE = (CONFIG, ENVIRONMENT, STATUS, METRICS)
"""What a run that is still computed shows of itself."""
STAYS = "checkpoints"
"""How the folders begin that are of use only where the run is computed."""

RecordFiles = dict[str, bytes]
"""Name inside the run's folder → content."""


def pack(folder: Path) -> RecordFiles:
    """Return all files of a run, hidden ones and checkpoints left out."""
    names = [each.relative_to(folder) for each in sorted(folder.rglob("*")) if each.is_file()]
    return {
        name.as_posix(): (folder / name).read_bytes()
        for name in names
        if not name.parts[0].startswith(STAYS)
        and not any(part.startswith(".") for part in name.parts)
    }


def pack_live(folder: Path) -> RecordFiles:
    """Return the files by which a run that is still computed can be watched."""
    return {name: (folder / name).read_bytes() for name in LIVE if (folder / name).is_file()}


def unpack(parcel: Mapping[str, bytes], folder: Path) -> bool:
    """Put a run's files in place, the result last; False where its result is there already.

    A record counts as finished when its result is there, so a reader never sees half of one.
    Checkpoints of an attempt that was begun here and ended elsewhere go once the result has come.
    """
    for name in parcel:
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or any(part.startswith(".") for part in parts):
            raise ValueError(f"a parcel must hold names inside the run's folder, got {name!r}")
    if (folder / RESULT).exists():
        return False
    for name in sorted(parcel, key=lambda each: each == RESULT):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, parcel[name])
    for left in folder.glob(f"{STAYS}*") if RESULT in parcel else ():
        shutil.rmtree(left, ignore_errors=True)
    return True

"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: bytes | str) -> Path:
    """Put a file in place at once: written beside it, flushed to the disk, renamed.

    A reader sees the old file or the new one, never a part; so does one after a power cut.
    """
    beside = path.with_name(f".{path.name}.partial-{os.getpid()}")
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)
    return path


def write_json(path: Path, values: Any) -> Path:
    """Put plain values in place as readable JSON; a number that JSON does not know is refused."""
    return write_whole(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def flush_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk: a rename outlives a power cut only after that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

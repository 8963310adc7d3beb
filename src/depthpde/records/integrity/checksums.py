"""Checksums of a finished record: of its files, and of its own numbers.

    result.json   {…, "checksums": {"files": {NAME: {"bytes": …, "sha256": …}}, "numbers": …}}

They find what disks, copies and hands change by accident. Whoever changes a record on purpose can
write new ones; they are no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from depthpde.files import file_digest

KEY = "checksums"
WEIGHTS = "model"
"""The folder that a copy of a record may leave out, whole."""


def seal(folder: Path, result: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return a result with the checksums of the run's files and of the result itself.

    Args:
        folder: The run's folder.
        result: Without checksums.
        names: Files inside the folder; those that are not there are left out.
    """
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": file_digest(folder / name)}
        for name in sorted(names)
        if (folder / name).is_file()
    }
    sealed = {**result, KEY: {"files": files}}
    return {**result, KEY: {"files": files, "numbers": _digest(sealed)}}


def sealed_files(result: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Return the files a result vouches for, by name; none for a record without checksums."""
    return dict((result or {}).get(KEY, {}).get("files", {}))


def check_numbers(path: Path, result: Mapping[str, Any]) -> None:
    """Refuse a result that differs from what its own checksum was made of."""
    sums = result.get(KEY)
    if sums is None:
        return
    if not isinstance(sums, Mapping) or not _describes(sums.get("files")):
        raise ValueError(
            f"{path} must hold checksums by file, got {str(sums)[:60]}; {_again(path.parent)}"
        )
    inner = {name: each for name, each in sums.items() if name != "numbers"}
    if _digest({**result, KEY: inner}) != sums.get("numbers"):
        raise ValueError(
            f"{path} must hold the numbers its checksum was made of, got changed ones; "
            f"{_again(path.parent)}"
        )


def check_sizes(folder: Path, result: Mapping[str, Any]) -> None:
    """Refuse a record one of whose files is missing or of another size; none is read."""
    for name, entry in sealed_files(result).items():
        path = f"{folder}/{name}"
        try:
            about = os.stat(path)
        except FileNotFoundError:
            if name.startswith(f"{WEIGHTS}/") and not (folder / WEIGHTS).exists():
                continue  # copied without its weights
            raise ValueError(f"{path} is missing, but has a checksum; {_again(folder)}") from None
        if not stat.S_ISREG(about.st_mode) or about.st_size != entry["bytes"]:
            raise ValueError(
                f"{path} must have {entry['bytes']} bytes, got {about.st_size}; {_again(folder)}"
            )


def check_count(path: Path, test: Mapping[str, Any], content: bytes | None = None) -> None:
    """Refuse predictions, a byte each, that are not as many as the test counts.

    The one file whose size a result tells without a checksum. One that is not there is fine.

    Args:
        path: The file.
        test: Of the result; nothing is wanted where it counts nothing.
        content: What was read of the file; its size alone is asked for if not given.
    """
    wanted = test.get("targets")
    if wanted is None or (content is None and not path.exists()):
        return
    held = path.stat().st_size if content is None else len(content)
    if held != wanted:
        raise ValueError(
            f"{path} must hold {wanted} predictions, got {held}; {_again(path.parent)}"
        )


def check_file(
    folder: Path, name: str, result: Mapping[str, Any] | None, content: bytes | None = None
) -> None:
    """Refuse a file of a finished record that is not the one that was written.

    Its digest is computed once, and again when its time, size or number on the disk has changed.

    Args:
        folder: The run's folder.
        name: Of the file.
        result: Which vouches for it, or does not.
        content: What was read of it, so that it need not be read again.
    """
    entry = sealed_files(result).get(name)
    if entry is None:
        return
    known = None if content is None else hashlib.sha256(content).hexdigest()
    if (known or file_digest(folder / name)) != entry["sha256"]:
        raise ValueError(
            f"{folder / name} must have the SHA-256 of its record, {entry['sha256'][:12]}…, got "
            f"another; {_again(folder)}"
        )


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _describes(files: object) -> bool:
    return isinstance(files, Mapping) and all(
        isinstance(entry, Mapping)
        and type(entry.get("bytes")) is int
        and isinstance(entry.get("sha256"), str)
        and not name.startswith("/")
        and ".." not in name.split("/")
        for name, entry in files.items()
    )


def _again(folder: Path) -> str:
    return f"copy it anew, or move {folder} away and the same command computes it again"

"""Files: written whole or not at all, read only when they are plain files of a stated size."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LARGEST = 64 * 2**20
"""Bytes that a file of plain values may have; the largest committed one has 0.3 MB."""
_BLOCK = 1 << 20
_digests: dict[str, tuple[tuple[int, int, int], str]] = {}  # path → (time, size, number), digest
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # not on Windows
PARTIAL = ".partial-"
"""What the name of a file that is being written contains."""


def read_plain(path: Path | str, limit: int = LARGEST) -> bytes:
    """Return the content of a regular file below a size; anything else is refused unread.

    A pipe would wait for ever, a device never ends, and a sparse file of 10 GB takes 10 GB of
    memory, so what is opened is asked first, without waiting for it.

    >>> len(read_plain(Path("pyproject.toml"))) > 0
    True

    Args:
        path: The file; links are followed.
        limit: Most bytes it may have.
    """
    handle = os.open(path, _READ)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            kind = _kind(about.st_mode)
            raise ValueError(f"{path} must be a regular file, got {kind}; remove it")
        content = _read(handle, about.st_size, limit) if about.st_size <= limit else b""
    finally:
        os.close(handle)
    if about.st_size > limit or len(content) > limit:
        size = max(about.st_size, len(content))
        raise ValueError(
            f"{path} must have at most {limit:,} bytes, got {size:,}; remove it, or copy it anew"
        )
    return content


def _read(handle: int, size: int, limit: int) -> bytes:
    """Return what an open file holds; without a stream, which costs more than a small file."""
    content = os.read(handle, size + 1)  # asked for `limit` bytes, it would make room for them all
    while len(content) != size and len(content) <= limit:  # it has grown since, or was cut short
        more = os.read(handle, min(limit + 1 - len(content), _BLOCK))
        if not more:
            break
        content += more
    return content


def parse_json(text: bytes | str, *, constants: bool = False) -> Any:
    """Return the values of a JSON text whose numbers all are finite and fit into 64 bits.

    Python reads 1e999 as infinity and an integer of any length, on which arithmetic and other
    programs fail far from the file; both are refused here. Only a text in which such a number
    could stand pays for a look at each of its numbers.

    >>> parse_json('{"accuracy": 61.5}')
    {'accuracy': 61.5}

    Args:
        text: The JSON.
        constants: Accept NaN and Infinity, which a curve that diverged holds.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODERS[constants, _may_overflow(text)].decode(text)


def parse_json_lines(lines: Sequence[str]) -> list[Any] | None:
    """Return the values of whole lines of JSON, NaN accepted, faster than one by one.

    >>> parse_json_lines(['{"update": 1}', '{"update": 2}'])
    [{'update': 1}, {'update': 2}]

    Returns:
        None where any line is no single value; parse them one by one to learn which.
    """
    try:
        found: list[Any] = parse_json(f"[{','.join(lines)}]", constants=True)
    except (ValueError, RecursionError):
        return None
    return found if len(found) == len(lines) else None


def read_json(path: Path, limit: int = LARGEST) -> Any:
    """Return the values that a plain file of JSON holds; ValueError where it is none."""
    try:
        return parse_json(read_plain(path, limit))
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply: {error}") from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, computed once in a process while the file stays the same.

    The same: its time, size and number on the disk.

    >>> len(file_digest(Path("pyproject.toml")))
    64
    """
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{path} must be a regular file, got {_kind(about.st_mode)}; remove it")
    now, place = (about.st_mtime_ns, about.st_size, about.st_ino), os.path.abspath(path)
    kept = _digests.get(place)
    if kept is None or kept[0] != now:
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        kept = _digests[place] = (now, digest.hexdigest())
    return kept[1]


def place_folder(partial: Path, target: Path, mode: int) -> Path:
    """Put a folder in place at once: every file flushed, its mode set, then one rename.

    Args:
        partial: Written beside the target, complete.
        target: What it becomes; an older one is removed first.
        mode: Permissions of the files; libraries write some of their own.
    """
    for each in sorted(partial.rglob("*")):
        if each.is_file():
            each.chmod(mode)
            with each.open("rb") as stream:
                os.fsync(stream.fileno())
    flush_folder(partial)
    if target.exists():
        shutil.rmtree(target)
    partial.rename(target)
    flush_folder(target.parent)
    return target


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"a number must be finite, got {text[:20]}")
    return value


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise ValueError(f"a whole number must fit into 64 bits, got {text[:20]}…")
    return int(text)


def _may_overflow(text: str) -> bool:
    """Return whether a number of a text may be infinite or beyond 64 bits; never wrongly no.

    It would have 19 digits before its point, or a positive exponent of three.
    """
    outline = b"." + text.encode("utf-8", "surrogatepass").translate(_OUTLINE, b"+")
    if _LONG in outline:
        return True
    at, seen = outline.find(_EXPONENT), 0
    while at >= 0 and seen < _MOST_SEEN:  # most are parts of a checksum, which is no number
        start = outline.rfind(b".", 0, at) + 1
        if not outline[start:at].strip(b"0/"):
            return True
        at, seen = outline.find(_EXPONENT, at + 1), seen + 1
    return at >= 0


_OUTLINE = bytes.maketrans(b"123456789E.:,[{- \t\r\n", b"000000000e/.........")
"""Digits alike, and alike what a number can follow; its own point is none of that."""
_LONG, _EXPONENT = b"." + b"0" * 19, b"0e000"
_MOST_SEEN = 100
_DECODERS = {
    (constants, careful): json.JSONDecoder(
        parse_float=_finite if careful else None,
        parse_int=_whole if careful else None,
        parse_constant=float if constants else _finite,
    )
    for constants in (False, True)
    for careful in (False, True)
}


def _kind(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return (kinds | {stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"})[stat.S_IFMT(mode)]


def write_whole(path: Path, content: bytes | str) -> Path:
    """Put a file in place at once: written beside it, flushed to the disk, renamed.

    A reader sees the old file or the new one, never a part; so does one after a power cut.
    """
    beside = path.with_name(f".{path.name}{PARTIAL}{os.getpid()}")
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


def local_names(text: str, root: Path) -> str:
    """Name the files of a text from a folder on: where that folder lies is nobody's business.

    Only whole paths are shortened: of a folder ``r`` neither ``other/r/x`` nor ``her/x`` changes.
    """
    for folder in dict.fromkeys((str(root.absolute()), str(root))):
        text = re.sub(rf"(?<![\w./~-]){re.escape(folder + os.sep)}", "", text)
    return text

"""Read prepared arrays as memory maps, and check them."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from depthpde.data.source import digest
from depthpde.data.task import TaskKind
from depthpde.data.writer import DOCUMENTS, FORMAT, INPUTS, MANIFEST, TYPES, Array
from depthpde.errors import check_name
from depthpde.files import file_digest, read_json

_ENTRIES = {
    "task", "kind", "shift", "length", "vocabulary", "classes", "facts", "splits", "columns"
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """One split of a prepared task, memory-mapped: nothing is read before it is used.

    >>> split = dp.load("listops-mini", "train")
    >>> len(split)
    32
    """

    name: str
    """``train``, ``validation`` or ``test``."""
    kind: TaskKind
    """What one example is."""
    shift: int
    """Token id = stored symbol + shift."""
    length: int
    """Longest sequence; the window of a language task."""
    padding: int | None
    """Every batch is padded to this length; None pads to the length bucket."""
    mask_zero_pixels: bool
    """Whether pixels of value 0 count as padding."""
    vocabulary: int
    """Number of token ids, padding included."""
    classes: int
    """Number of labels."""
    tokens: Array
    """All symbols end to end; [sites, channels] where they are real numbers."""
    offsets: Array
    """Where each sequence starts, and the end."""
    labels: Array | None
    """One for each example."""
    pairs: Array | None
    """[examples, 2] document numbers of a pair task."""
    channels: int | None = None
    """Real numbers at each site; None for symbols."""

    def __len__(self) -> int:
        """Return the number of examples; of full windows for a language task."""
        if self.kind is TaskKind.LANGUAGE:
            return max(0, (len(self.tokens) - 1) // self.length)
        return len(self.offsets) - 1 if self.pairs is None else len(self.pairs)

    def ids(self, sequence: int) -> Array:
        """Return the token ids of one stored sequence (a document, for pairs)."""
        start, end = self.offsets[sequence], self.offsets[sequence + 1]
        if self.channels is not None:
            raise ValueError(
                f"`ids` must be asked of symbols, got a split of {self.channels} real numbers a "
                "site; read `tokens` between `offsets`"
            )
        return self.tokens[start:end].astype(np.int64) + self.shift

    def lengths(self) -> Array:
        """Return the length of each example; of the longer document for pairs."""
        lengths = np.diff(self.offsets)
        return lengths if self.pairs is None else lengths[self.pairs].max(axis=1)


def default_out() -> Path:
    """Return the folder for prepared arrays: ``depthpde/data`` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "depthpde" / "data"


def how_to_prepare(folder: Path, *options: str) -> str:
    """Return the command that makes a prepared folder, such as ``OUT/text@lra-2020``.

    Args:
        folder: The task's own folder.
        options: More words of the command, such as ``--force``.
    """
    task, _, protocol = folder.name.partition("@")
    words = [task, *(["--protocol", protocol] if protocol else []), *options]
    return prepare_command(folder.parent, *words)


def prepare_command(out: Path, *words: str) -> str:
    """Return ``depthpde data prepare`` with its words; a folder not the default one is named."""
    elsewhere = out.resolve() != default_out().resolve()
    where = ["--out", str(out)] if elsewhere else []
    return shlex.join(["depthpde", "data", "prepare", *words, *where])


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a prepared task; an error names why it cannot be used."""
    path = folder / MANIFEST
    again = f"run: {how_to_prepare(folder)}"
    try:
        manifest = read_json(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} is not prepared (no {MANIFEST}); {again}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not a manifest ({error}); {again}") from error
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if version != FORMAT:
        raise ValueError(f"{path} must be of format {FORMAT}, got {version!r}; {again}")
    missing = _ENTRIES - manifest.keys()
    if missing:
        raise ValueError(f"{path} lacks {', '.join(sorted(missing))}; {again}")
    columns = manifest["columns"]
    if not isinstance(columns, dict) or not all(_describes(*item) for item in columns.items()):
        raise ValueError(f"{path} does not describe its columns; {again}")
    return dict(manifest)


def read_split(folder: Path, split: str) -> Split:
    """Return one split of a prepared task as memory maps, or raise naming which array has changed.

    Sizes are checked every time, checksums when a process first uses a file, and again when its
    time or size has changed.
    """
    manifest = read_manifest(folder)
    known = [name for name in manifest["splits"] if name != DOCUMENTS]
    check_name("split", split, known)
    paired = manifest["kind"] == TaskKind.PAIR
    stored = DOCUMENTS if paired else split
    return Split(
        name=split,
        kind=TaskKind(manifest["kind"]),
        shift=manifest["shift"],
        length=manifest["length"],
        padding=manifest.get("padding"),
        mask_zero_pixels=manifest.get("mask_zero_pixels", False),
        vocabulary=manifest["vocabulary"],
        classes=manifest["classes"],
        tokens=_inputs(folder, manifest, stored),
        offsets=_map(folder, manifest, f"{stored}.offsets.i64"),
        labels=None
        if manifest["kind"] == TaskKind.LANGUAGE
        else _map(folder, manifest, f"{split}.labels.u8"),
        pairs=_map(folder, manifest, f"{split}.pairs.u32").reshape(-1, 2) if paired else None,
        channels=manifest.get("channels"),
    )


def problems(folder: Path) -> list[str]:
    """Recompute every checksum of a prepared task, and return what is wrong, best nothing.

    The last of several says what to do about them all.
    """
    try:
        manifest = read_manifest(folder)
    except (ValueError, OSError) as error:
        return [str(error)]
    found = []
    for file, entry in manifest["columns"].items():
        path = folder / file
        if not path.is_file():
            found.append(f"{path} is missing")
        elif digest(path) != entry["sha256"]:
            found.append(f"{path} has changed since it was prepared (SHA-256 differs)")
    if not found:
        found = _contradictions(folder, manifest)
    if found:
        found[-1] += f"; run: {how_to_prepare(folder, '--force')}"
    return found


def misfits(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Describe which files of a prepared task are missing or of another size; none is read."""
    misfits = (_misfit(folder / file, entry) for file, entry in manifest["columns"].items())
    return [each for each in misfits if each]


def _misfit(path: Path, entry: dict[str, Any]) -> str:
    """Describe what is wrong with the size of a column's file, best nothing."""
    if not path.is_file():
        return f"{path} is missing"
    wanted, got = entry["count"] * TYPES[entry["type"]].itemsize, path.stat().st_size
    return "" if got == wanted else f"{path} must have {wanted} bytes, got {got}"


def _contradictions(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return what the arrays say against the manifest: labels, offsets, pairs."""
    found = []
    for name in manifest["splits"]:
        if name == DOCUMENTS:
            continue
        split = read_split(folder, name)
        if split.labels is not None and split.labels.max(initial=0) >= manifest["classes"]:
            found.append(f"{folder}: {name} has a label outside 0 … {manifest['classes'] - 1}")
        if (np.diff(split.offsets) < 0).any() or split.offsets[-1] != len(split.tokens):
            found.append(f"{folder}: the offsets of {name} do not cover its tokens")
        if split.pairs is not None and split.pairs.max(initial=0) >= len(split.offsets) - 1:
            found.append(f"{folder}: {name} has a pair beyond its documents")
    return found


def _describes(file: str, entry: object) -> bool:
    """Return whether a manifest's entry describes a column of a file beside it."""
    return (
        isinstance(entry, dict)
        and "/" not in file
        and entry.get("type") in TYPES
        and isinstance(entry.get("count"), int)
        and isinstance(entry.get("sha256"), str)
    )


def _inputs(folder: Path, manifest: dict[str, Any], stored: str) -> Array:
    """Return the column of inputs of whatever type it is stored in."""
    names = [f"{stored}.tokens.{kind}" for kind in INPUTS]
    name = next((each for each in names if each in manifest["columns"]), names[0])
    found = _map(folder, manifest, name)
    channels = manifest.get("channels")
    return found if channels is None else found.reshape(-1, channels)


def _map(folder: Path, manifest: dict[str, Any], file: str) -> Array:
    entry = manifest["columns"].get(file)
    path = folder / file
    again = f"run: {how_to_prepare(folder)}"
    if entry is None or not path.is_file():
        raise FileNotFoundError(f"{path} is missing; {again}")
    wrong = _misfit(path, entry)
    if wrong:
        raise ValueError(f"{wrong}; {again}")
    if file_digest(path) != entry["sha256"]:
        raise ValueError(
            f"{path} must have the SHA-256 of its manifest, {entry['sha256'][:12]}…, got another: "
            f"it has changed since it was prepared; run: {how_to_prepare(folder, '--force')}"
        )
    kind = TYPES[entry["type"]]
    if not entry["count"]:
        return np.zeros(0, kind)
    return np.memmap(path, dtype=kind, mode="r")

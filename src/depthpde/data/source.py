"""Official files: where they lie, whether they are the right ones, and how to get them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

_DEPTHS = ("", "*/", "*/*/")
_BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A data set as its makers publish it."""

    name: str
    """What people call it."""
    layout: str
    """The files or folders that are read, in words."""
    url: str
    """Where the makers publish it."""
    patterns: tuple[str, ...]
    """Names that show it is there, the most official first: wildcards allowed, ``/`` at the end
    means a folder, anything else a file."""
    md5: Mapping[str, str] = field(default_factory=dict)
    """Published MD5 checksums by file name."""
    not_in: str = ""
    """Folders of this name hold another data set whose files are called the same."""

    def find(self, data: Path | None, patterns: Iterable[str] | None = None, *, task: str) -> Path:
        """Return the first match of the patterns beneath the data folder, or say how to get it.

        Args:
            data: The folder with the official files; they may lie up to two folders deeper.
            patterns: File or folder names other than the source's own.
            task: For whom, for the message.
        """
        tried = list(self.patterns if patterns is None else patterns)
        if data is None:
            raise FileNotFoundError(self._advice(task, "no data folder was given"))
        if not data.is_dir():
            raise FileNotFoundError(self._advice(task, f"{data} is not a folder"))
        found = self.seek(data, tried)
        if found is None:
            raise FileNotFoundError(
                self._advice(task, f"beneath {data} there is no {' or '.join(tried)}")
            )
        return found

    def seek(self, data: Path | None, patterns: Iterable[str] | None = None) -> Path | None:
        """Return the first match of the patterns beneath the data folder, or None."""
        if data is None:
            return None
        for pattern in self.patterns if patterns is None else patterns:
            for depth in _DEPTHS:
                for match in sorted(data.glob(depth + pattern.removesuffix("/"))):
                    if match.is_dir() == pattern.endswith("/") and not self._foreign(data, match):
                        return match
        return None

    def _foreign(self, data: Path, match: Path) -> bool:
        above = match.relative_to(data).parts[:-1]
        return bool(self.not_in) and any(fnmatchcase(each, self.not_in) for each in above)

    def check(self, path: Path) -> None:
        """Refuse a file whose published checksum is known and differs."""
        wanted = self.md5.get(path.name)
        if wanted is not None:
            self.check_digest(str(path), wanted, digest(path, "md5"))

    def check_digest(self, what: str, wanted: str, got: str) -> None:
        """Refuse content whose MD5 is not the published one."""
        if got != wanted:
            raise ValueError(
                f"{what} must have the published MD5 {wanted}, got {got}; download it again from "
                f"{self.url}, or pass --any-checksum to use a changed copy (the manifest says so)"
            )

    def check_count(self, what: str, wanted: int, got: int) -> None:
        """Refuse a release that is not whole, or not the one that was published."""
        if got != wanted:
            raise ValueError(
                f"{what} must hold {wanted:,} examples, got {got:,}; unpack it again from "
                f"{self.url}, or pass --any-checksum to use a part (the manifest says so)"
            )

    def _advice(self, task: str, problem: str) -> str:
        return (
            f"{task} needs {self.name} ({self.layout}), but {problem}; get it from {self.url}, "
            f"then run: depthpde data prepare {task} --data FOLDER"
        )


def content_digest(parts: Iterable[bytes]) -> str:
    """Return one SHA-256 for many pieces in order, whatever archive or folder they came from."""
    running = hashlib.sha256()
    for part in parts:
        running.update(hashlib.sha256(part).digest())
    return running.hexdigest()


def digest(path: Path, algorithm: str = "sha256") -> str:
    """Return the checksum of a file, read in blocks."""
    running = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            running.update(block)
    return running.hexdigest()

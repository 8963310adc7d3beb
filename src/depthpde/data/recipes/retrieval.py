"""Retrieval: is there a citation between two papers? Two towers, byte by byte.

The release has the texts of both papers in every line, 8.5 GB for train. The file is read once
and line by line; each document is kept once, cut at the task's length, and pairs are two numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from depthpde.data.source import Source
from depthpde.data.task import Request, Task
from depthpde.data.writer import DOCUMENTS, Writer

AAN = Source(
    name="the AAN pairs of the Long Range Arena release",
    layout="tsv_data/new_aan_pairs.train.tsv, .eval.tsv, .test.tsv",
    url="https://github.com/google-research/long-range-arena (lra_release.gz)",
    patterns=("new_aan_pairs.train.tsv",),
)
FILES = {"train": "train", "validation": "eval", "test": "test"}
LABELS = {b"0.0": 0, b"1.0": 1, b"0": 0, b"1": 1}
_LONGEST_LINE = 1 << 26
_BLOCK = 4096


class Pair(NamedTuple):
    """One line of the release."""

    label: int
    ids: tuple[bytes, bytes]
    texts: tuple[bytes, bytes]


class Shelf:
    """Keeps each document once, and hands it to the writer in blocks."""

    def __init__(self, writer: Writer, length: int) -> None:
        self.count = 0
        self.names: set[bytes] = set()
        self._writer = writer
        self._length = length
        self._numbers: dict[bytes, int] = {}
        self._waiting: list[bytes] = []

    def number(self, name: bytes, text: bytes) -> int:
        """Return the number of a document, kept now if it is new.

        A name that comes with two texts is two documents.
        """
        short = text[: self._length] or b"\n"
        mark = hashlib.blake2b(name + b"\t" + short, digest_size=16).digest()
        known = self._numbers.get(mark)
        if known is not None:
            return known
        self.names.add(name)
        self._numbers[mark] = self.count
        self._waiting.append(short)
        self.count += 1
        if len(self._waiting) == _BLOCK:
            self.flush()
        return self._numbers[mark]

    def flush(self) -> None:
        """Write the documents that wait."""
        if self._waiting:
            tokens = np.frombuffer(b"".join(self._waiting), dtype=np.uint8)
            lengths = np.array([len(each) for each in self._waiting], dtype=np.int64)
            self._writer.append(DOCUMENTS, tokens, lengths, None)
            self._waiting.clear()


def read_pairs(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a release file; quotes are ordinary characters.

    Five columns parted by tabs, no header: label ``0.0`` or ``1.0``, two names, two texts.
    """
    number = 0
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            number += 1
            columns = line.rstrip(b"\r\n").split(b"\t")
            if len(columns) != 5 or (len(line) == _LONGEST_LINE and not line.endswith(b"\n")):
                raise ValueError(
                    f"{path} line {number} must have 5 columns parted by tabs (label, two names, "
                    f"two texts), got {len(columns)}; take the file of the release"
                )
            label, first, second, text, other = columns
            if label not in LABELS:
                raise ValueError(
                    f"{path} line {number} must have the label 0.0 or 1.0, got {label[:20]!r}"
                )
            yield Pair(LABELS[label], (first, second), (text, other))
    if not number:
        raise ValueError(f"{path} is empty; take the file of the release")


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Stream the three files; memory holds one line, one block and a mark for each document."""
    shelf = Shelf(writer, task.length)
    for split in task.splits:
        name = f"new_aan_pairs.{FILES[split]}.tsv"
        path = AAN.find(request.data, [name], task=task.name)
        request.log(f"{task.name}: streaming {path}")
        pairs, labels = [], []
        for pair in read_pairs(path):
            numbers = [
                shelf.number(name, text) for name, text in zip(pair.ids, pair.texts, strict=True)
            ]
            pairs.append(numbers)
            labels.append(pair.label)
        if request.check:
            AAN.check_count(str(path), task.splits[split], len(labels))
        writer.append_pairs(split, np.array(pairs), np.array(labels, dtype=np.uint8))
        writer.add_source(path)
    shelf.flush()
    writer.facts["documents"] = shelf.count
    writer.facts["names_with_two_texts"] = shelf.count - len(shelf.names)

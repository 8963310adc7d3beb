"""Text: is an IMDb review positive or negative, read byte by byte?

Token id = byte + 1, id 0 is padding. A review is cut at the task's length from its start; nothing
is cleaned. Long Range Arena has no validation split here and selected on test; under the strict
protocol 2,500 training reviews are held out.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from depthpde.data.archive import members
from depthpde.data.protocol import Units, ValidationSource
from depthpde.data.ragged import END, UNKNOWN, Ragged, ragged
from depthpde.data.source import Source, content_digest
from depthpde.data.splits import hold_out, stratified
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer

IMDB = Source(
    name="the IMDb reviews",
    layout="folder aclImdb or aclImdb_v1.tar.gz",
    url="https://ai.stanford.edu/~amaas/data/sentiment/",
    patterns=("aclImdb/", "aclImdb_v1.tar.gz", "aclImdb.tar*", "aclImdb_v1_labelled*.tar*"),
    md5={"aclImdb_v1.tar.gz": "7c2ac02c03563afcf9b574c7e56c153a"},
)
SENTIMENTS = ("neg", "pos")
_PER_SENTIMENT = 12_500
_NAME = re.compile(r"(?:.*/)?(train|test)/(neg|pos)/(\d+)_(\d+)\.txt")
_MIN_FREQUENCY = 15


def read_reviews(path: Path, *, check: bool = True) -> dict[str, tuple[list[bytes], Array]]:
    """Read the labelled reviews of a folder or tar: split → texts and labels.

    Reviews stand by label, then by number, whatever order the files were found in.

    Args:
        path: The folder ``aclImdb``, or a tar of it.
        check: Refuse another number of reviews than the official 12,500 of each kind.
    """
    found: dict[tuple[str, str], list[tuple[int, bytes]]] = {
        (split, kind): [] for split in ("train", "test") for kind in SENTIMENTS
    }
    for name, content in members(path, lambda name: _NAME.fullmatch(name) is not None):
        match = _NAME.fullmatch(name)
        assert match is not None, "only matching names are read"
        found[match[1], match[2]].append((int(match[3]), content))
    for (split, kind), texts in found.items():
        if not texts or (check and len(texts) != _PER_SENTIMENT):
            raise ValueError(
                f"{path} must hold {_PER_SENTIMENT:,} reviews in {split}/{kind}, got "
                f"{len(texts):,}; unpack the whole archive from {IMDB.url}"
            )
    return {split: _in_order(found, split) for split in ("train", "test")}


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the reviews, hold out validation by the protocol, cut, and write."""
    path = IMDB.find(request.data, task=task.name)
    if request.check:
        IMDB.check(path)
    request.log(f"{task.name}: reading {path}")
    reviews = read_reviews(path, check=request.check)
    writer.add_source(path, content_sha256=content_digest(reviews["train"][0] + reviews["test"][0]))
    texts, labels = reviews["train"]
    parts: dict[str, tuple[list[bytes], Array]] = {"test": reviews["test"]}
    if task.mini:
        tests, test_labels = reviews["test"]
        _, few = stratified(test_labels, task.splits["test"], request.seed, task.name, "test")
        parts["test"] = [tests[each] for each in few], test_labels[few]
    if request.rules.validation is ValidationSource.TEST:
        parts |= {"train": (texts, labels), "validation": parts["test"]}
    else:
        count = task.splits["validation"]
        rule = request.rules.validation
        rest, held = hold_out(labels, count, rule, request.seed, task.name)
        for split, part in (("train", rest), ("validation", held)):
            parts[split] = [texts[each] for each in part], labels[part]
    alphabet = None
    if request.rules.units is Units.CHARACTERS:
        alphabet = alphabet_of(parts["train"][0], task.length)
        writer.facts["vocabulary"] = len(alphabet) + 3
    for split in task.splits:
        texts, labels = parts[split]
        short = (
            ragged([text[: task.length] for text in texts])
            if alphabet is None
            else in_characters(texts, alphabet, task.length)
        )
        writer.append(split, short.tokens, short.lengths, labels)


def alphabet_of(texts: list[bytes], length: int) -> dict[str, int]:
    """Number the characters seen at least 15 times, the commonest first, from 2 on.

    Only what is left of a text once it is cut to fit is counted.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text.decode("utf-8", errors="replace")[: length - 1])
    common = sorted((-n, char) for char, n in counts.items() if n >= _MIN_FREQUENCY)
    if len(common) > 250:
        raise ValueError(f"an alphabet must have at most 250 characters, got {len(common)}")
    return {char: symbol for symbol, (_, char) in enumerate(common, start=END + 1)}


def in_characters(texts: list[bytes], alphabet: dict[str, int], length: int) -> Ragged:
    """Write texts in the numbers of an alphabet, each cut to fit and ended."""
    written = [
        bytes(
            alphabet.get(char, UNKNOWN)
            for char in text.decode("utf-8", errors="replace")[: length - 1]
        )
        + bytes([END])
        for text in texts
    ]
    return ragged(written)


def _in_order(
    found: dict[tuple[str, str], list[tuple[int, bytes]]], split: str
) -> tuple[list[bytes], Array]:
    texts: list[bytes] = []
    labels: list[int] = []
    for label, kind in enumerate(SENTIMENTS):
        part = sorted(found[split, kind])
        texts += [content for _, content in part]
        labels += [label] * len(part)
    return texts, np.array(labels, dtype=np.uint8)

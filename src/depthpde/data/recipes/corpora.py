"""Language: predict the next byte of Shakespeare, WikiText-2 or enwik8.

A task is a long text cut into windows; every byte of the text is predicted once an epoch. What a
table of the last byte or two predicts needs no model, so every manifest has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from depthpde.data.archive import decompressed, is_archive, members
from depthpde.data.source import Source
from depthpde.data.task import Request, Task
from depthpde.data.writer import Writer

Bytes = npt.NDArray[np.uint8]

SHAKESPEARE = Source(
    name="tiny Shakespeare",
    layout="input.txt in a folder named *shakespeare*",
    url="https://github.com/karpathy/char-rnn (data/tinyshakespeare)",
    patterns=("*shakespeare*/input.txt", "*shakespeare*/input.txt.xz", "*shakespeare*.txt"),
)
WIKITEXT = Source(
    name="WikiText-2",
    layout="wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens, or a tar of them",
    url="https://huggingface.co/datasets/Salesforce/wikitext",
    patterns=("wiki.train.tokens", "wikitext-2.tar*", "wikitext-2-v1.tar*"),
)
WIKITEXT_MINI = replace(WIKITEXT, patterns=("wiki.test.tokens", "wikitext-2*.tar*"))
ENWIK8 = Source(
    name="enwik8",
    layout="enwik8 or enwik8.zip, the first 100,000,000 bytes of Wikipedia",
    url="https://mattmahoney.net/dc/textdata.html",
    patterns=("enwik8", "enwik8.zip"),
    md5={"enwik8": "a1fa5ffddb56f4953e226637dabbb36a"},
)
ENWIK8_MINI = replace(ENWIK8, patterns=(*ENWIK8.patterns, "enwik8.train.first10M*"))
_MILLION = 1_000_000
_PIECE = 8 * _MILLION
"""Bytes counted at a time."""
_PARTS = {
    "train": "enwik8.train.first10M*",
    "validation": "enwik8.valid.90M-95M*",
    "test": "enwik8.test.95M-100M*",
}


def shakespeare(task: Task, request: Request, writer: Writer) -> None:
    """Cut the text: first 90 % train, next 5 % validation, last 5 % test."""
    path = SHAKESPEARE.find(request.data, task=task.name)
    text = _read(path, task, request, writer)
    if request.check:
        _check_size(path, len(text), sum(task.splits.values()))
    first, second = len(text) * 90 // 100, len(text) * 95 // 100
    parts = {"train": text[:first], "validation": text[first:second], "test": text[second:]}
    _write(task, writer, parts)


def wikitext(task: Task, request: Request, writer: Writer) -> None:
    """Read the official token files as bytes.

    The mini task trains on nine tenths of the validation file and validates on the last tenth, so
    that it needs no training file.
    """
    files = _wikitext_files(task, request, writer)
    if task.mini:
        text = files["valid"]
        cut = len(text) * 9 // 10
        parts = {"train": text[:cut], "validation": text[cut:], "test": files["test"]}
    else:
        parts = {"train": files["train"], "validation": files["valid"], "test": files["test"]}
    _write(task, writer, parts)


def enwik8(task: Task, request: Request, writer: Writer) -> None:
    """Cut as usual: 90 MB train (the mini task: its first 10 MB), 5 MB validation, 5 MB test."""
    train = (10 if task.mini else 90) * _MILLION
    whole = ENWIK8.seek(request.data)
    if whole is None and task.mini and ENWIK8_MINI.seek(request.data):
        parts = {
            split: _read(
                ENWIK8.find(request.data, [pattern], task=task.name), task, request, writer
            )
            for split, pattern in _PARTS.items()
        }
        _write(task, writer, parts)
        return
    if whole is None:
        whole = ENWIK8.find(request.data, task=task.name)
    if request.check:
        ENWIK8.check(whole)
    text = _read(whole, task, request, writer)
    _check_size(whole, len(text), 100 * _MILLION)
    parts = {
        "train": text[:train],
        "validation": text[90 * _MILLION : 95 * _MILLION],
        "test": text[95 * _MILLION :],
    }
    _write(task, writer, parts)


def baselines(train: Bytes, test: Bytes) -> dict[str, float]:
    """Return the percent of the test text that a table of the training text predicts.

    ``commonest_byte``: always the same one. ``after_one_byte``, ``after_two_bytes``: the commonest
    after the one or two before; after what the training text lacks, that of the shorter table.
    The first two bytes of the test text are given.
    """
    predicted = np.zeros(len(test) - 2, dtype=np.int64)
    found = {}
    for known, name in enumerate(("commonest_byte", "after_one_byte", "after_two_bytes")):
        counts = np.zeros(256 ** (known + 1), dtype=np.int64)
        keys = _keys(train, known) * 256 + train[2:]
        for start in range(0, len(keys), _PIECE):
            counts += np.bincount(keys[start : start + _PIECE], minlength=len(counts))
        table = counts.reshape(-1, 256)
        before = _keys(test, known)
        seen, commonest = table.max(axis=1) > 0, table.argmax(axis=1)
        predicted = np.where(seen[before], commonest[before], predicted)
        found[name] = 100.0 * float(np.mean(predicted == test[2:]))
    return found


def _keys(text: Bytes, known: int) -> npt.NDArray[np.uint32]:
    """Number the one or two bytes before each byte of a text, from its third on."""
    keys = np.zeros(len(text) - 2, dtype=np.uint32)
    for back in range(known, 0, -1):
        keys = keys * 256 + text[2 - back : len(text) - back]
    return keys


def _wikitext_files(task: Task, request: Request, writer: Writer) -> dict[str, bytes]:
    needed = ("valid", "test") if task.mini else ("train", "valid", "test")
    wanted: Callable[[str], bool] = lambda name: name.endswith(".tokens")  # noqa: E731
    source = WIKITEXT_MINI if task.mini else WIKITEXT
    path = source.find(request.data, task=task.name)
    if not is_archive(path):
        path = path.parent
    request.log(f"{task.name}: reading {path}")
    found = {name.rsplit("/", 1)[-1]: text for name, text in members(path, wanted)}
    missing = [f"wiki.{part}.tokens" for part in needed if f"wiki.{part}.tokens" not in found]
    if missing:
        raise FileNotFoundError(
            f"{task.name} needs {', '.join(missing)}, but {path} lacks them; get them from "
            f"{WIKITEXT.url}, then run: depthpde data prepare {task.name} --data FOLDER"
        )
    writer.add_source(path)
    return {part: found[f"wiki.{part}.tokens"] for part in needed}


def _read(path: Path, task: Task, request: Request, writer: Writer) -> bytes:
    request.log(f"{task.name}: reading {path}")
    writer.add_source(path)
    return decompressed(path)


def _check_size(path: Path, got: int, wanted: int) -> None:
    if got != wanted:
        raise ValueError(f"{path} must hold {wanted:,} bytes, got {got:,}; download it again")


def _write(task: Task, writer: Writer, parts: dict[str, bytes]) -> None:
    for split, text in parts.items():
        if len(text) <= task.length:
            raise ValueError(
                f"{split} of {task.name} must be longer than one window of {task.length} bytes, "
                f"got {len(text)}"
            )
        writer.append(split, np.frombuffer(text, dtype=np.uint8), np.array([len(text)]), None)
    train, test = (np.frombuffer(parts[split], dtype=np.uint8) for split in ("train", "test"))
    writer.facts["baselines"] = baselines(train, test)

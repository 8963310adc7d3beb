"""Image: CIFAR-10 in grey, its 1,024 pixels row by row as a sequence.

    grey = 0.2989 R + 0.5870 G + 0.1140 B,   rounded to 0 … 255

A model takes the grey levels in as tokens (a table of 256 rows) or as numbers (``linear``).
"""

from __future__ import annotations

import hashlib
import io
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from depthpde.data.archive import members
from depthpde.data.ragged import rows
from depthpde.data.source import Source
from depthpde.data.splits import hold_out, stratified
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer

BATCHES = (
    "data_batch_1",
    "data_batch_2",
    "data_batch_3",
    "data_batch_4",
    "data_batch_5",
    "test_batch",
)
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
CIFAR = Source(
    name="CIFAR-10",
    layout="folder cifar-10-batches-bin or -py, cifar-10-binary.tar.gz or -python.tar.gz",
    url="https://www.cs.toronto.edu/~kriz/cifar.html",
    patterns=(
        "cifar-10-batches-bin/",
        "cifar-10-binary.tar.gz",
        "cifar-10-batches-py/",
        "cifar-10-python.tar.gz",
        "cifar10_webp_lossless.npz",
    ),
    md5={
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
        "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    },
)
_RECORD = 1 + 3 * 32 * 32
_WEIGHTS = np.array([0.2989, 0.5870, 0.1140], dtype=np.float32)


def grey(colours: Array) -> Array:
    """Return the grey levels [count, 32, 32] of colour planes [count, 3, 32, 32]."""
    levels: Array = np.einsum("ncyx,c->nyx", colours.astype(np.float32), _WEIGHTS)
    return np.rint(levels).astype(np.uint8)


def halved(images: Array) -> Array:
    """Return images [count, h, w] at half the size: the rounded mean of each 2×2 square."""
    count, height, width = images.shape
    squares: Array = images.reshape(count, height // 2, 2, width // 2, 2).astype(np.uint16)
    sums: Array = squares.sum(axis=(2, 4))
    return ((sums + 2) // 4).astype(np.uint8)


def grey_facts(images: Array) -> dict[str, float]:
    """Return mean and spread of the grey levels in 0 … 1, for the linear input."""
    counts = np.bincount(images.reshape(-1), minlength=256)
    levels = np.arange(256) / 255
    mean = float((counts * levels).sum() / counts.sum())
    spread = float(np.sqrt((counts * (levels - mean) ** 2).sum() / counts.sum()))
    return {"pixel_mean": round(mean, 6), "pixel_spread": round(spread, 6)}


def read_batches(path: Path, *, check: bool = True) -> dict[str, tuple[Array, Array]]:
    """Read CIFAR-10: batch name → colour planes [10000, 3, 32, 32] and labels.

    The ``-py`` files are pickles; their opcodes are read, never executed. The records of the
    binary version are rebuilt from every form, so one set of checksums covers all.

    Args:
        path: One of the official folders or archives, or the lossless sheets ``.npz``.
        check: Refuse records whose published MD5 differs.
    """
    found = {}
    for name, record in _records(path):
        if check:
            got = hashlib.md5(record, usedforsecurity=False).hexdigest()
            CIFAR.check_digest(f"{name} of {path}", CIFAR.md5[f"{name}.bin"], got)
        table = np.frombuffer(record, dtype=np.uint8).reshape(-1, _RECORD)
        if table[:, 0].max() >= len(CLASSES):
            raise ValueError(f"{name} of {path} must have labels 0 … 9, got {table[:, 0].max()}")
        found[name] = table[:, 1:].reshape(-1, 3, 32, 32), table[:, 0]
    missing = [name for name in BATCHES if name not in found]
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(missing)}; unpack the whole archive from {CIFAR.url}"
        )
    return found


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the batches, turn them grey, hold out validation by the protocol, and write."""
    path = CIFAR.find(request.data, task=task.name)
    request.log(f"{task.name}: reading {path}")
    batches = read_batches(path, check=request.check)
    writer.add_source(path)
    images = np.concatenate([grey(batches[name][0]) for name in BATCHES])
    labels = np.concatenate([batches[name][1] for name in BATCHES])
    if task.mini:
        images = halved(images)
    tests = len(batches["test_batch"][1])
    rule, count = request.rules.validation, task.splits["validation"]
    rest, held = hold_out(labels[:-tests], count, rule, request.seed, task.name)
    test = np.arange(len(labels) - tests, len(labels))
    if task.mini:
        wanted = task.splits["test"]
        test = test[stratified(labels[test], wanted, request.seed, task.name, "test")[1]]
    writer.facts |= {"class_names": CLASSES, **grey_facts(images[rest])}
    for split, part in (("train", rest), ("validation", held), ("test", test)):
        joined = rows(images[part].reshape(len(part), -1))
        writer.append(split, joined.tokens, joined.lengths, labels[part])


def _records(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the batches in the binary version's form: a label and three colour planes each."""
    if path.suffix == ".npz":
        yield from _from_sheets(path)
        return
    for name, content in members(path, lambda name: _stem(name) in BATCHES):
        pickled = not name.endswith(".bin")
        record = _from_pickle(f"{name} of {path}", content) if pickled else content
        if not record or len(record) % _RECORD:
            raise ValueError(
                f"{name} of {path} must hold records of {_RECORD} bytes, got {len(record):,} "
                "bytes; download it again"
            )
        yield _stem(name), record


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(".bin")


def _from_pickle(what: str, content: bytes) -> bytes:
    """Find the pixels and labels among the opcodes of a pickle without executing any."""
    pixels, labels, listening = b"", [], False
    try:
        for opcode, argument, _ in pickletools.genops(content):
            if isinstance(argument, str):
                listening = argument == "labels" if len(argument) < 100 else listening
                if len(argument) > len(pixels) and len(argument) % (_RECORD - 1) == 0:
                    pixels = argument.encode("latin-1")
            elif isinstance(argument, bytes) and len(argument) % (_RECORD - 1) == 0:
                pixels = max(pixels, argument, key=len)
            elif listening and opcode.name == "BININT1":
                labels.append(argument)
    except Exception as error:
        raise ValueError(f"{what} is not a CIFAR-10 batch ({error}); download it again") from error
    planes = np.frombuffer(pixels, dtype=np.uint8).reshape(-1, _RECORD - 1)
    if not len(planes) or len(labels) != len(planes):
        raise ValueError(
            f"{what} must hold as many labels as images, got {len(labels)} and {len(planes)}; "
            "download it again"
        )
    column = np.array(labels, dtype=np.uint8)[:, None]
    return np.concatenate([column, planes], axis=1).tobytes()


def _from_sheets(path: Path) -> Iterator[tuple[str, bytes]]:
    """Read lossless WebP sheets of 20 × 50 tiles, ten for each batch."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ValueError(
            f"{path} holds WebP sheets, which need Pillow: pip install 'depthpde[data]'"
        ) from error
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as sheets:
            for name in BATCHES:
                tiles = [
                    np.asarray(
                        Image.open(io.BytesIO(sheets[f"{name}/sheet_{k}.webp"].tobytes()))
                    ).reshape(20, 32, 50, 32, 3)
                    for k in range(10)
                ]
                planes = np.stack(tiles).transpose(0, 1, 3, 5, 2, 4).reshape(-1, _RECORD - 1)
                labels = sheets[f"{name}/labels"].astype(np.uint8)[:, None]
                yield name, np.concatenate([labels, planes], axis=1).tobytes()
    except (KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged ({error}); copy it again") from error

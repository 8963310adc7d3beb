"""MNIST and Fashion-MNIST: the grey levels of an image, row by row, as a sequence."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from depthpde.data.archive import decompressed
from depthpde.data.ragged import rows
from depthpde.data.recipes.image import grey_facts, halved
from depthpde.data.source import Source
from depthpde.data.splits import hold_out, stratified
from depthpde.data.task import Request, Task
from depthpde.data.writer import Array, Writer

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_LAYOUT = "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-…"
MNIST = Source(
    name="MNIST",
    layout=_LAYOUT,
    url="http://yann.lecun.com/exdb/mnist/",
    patterns=tuple(
        f"{folder}train-images-idx3-ubyte*" for folder in ("mnist/", "MNIST/", "MNIST/raw/", "")
    ),
    md5={
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    not_in="[Ff]ashion*",
)
FASHION = Source(
    name="Fashion-MNIST",
    layout="in a folder named fashion…: " + _LAYOUT,
    url="https://github.com/zalandoresearch/fashion-mnist",
    patterns=tuple(
        f"[Ff]ashion*/{folder}train-images-idx3-ubyte*" for folder in ("", "raw/", "data/fashion/")
    ),
    md5={
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
)


def read_idx(path: Path, axes: int) -> Array:
    """Read an IDX file of bytes, packed or not.

    The header is big-endian: 0, 0, 8 (bytes), the number of axes, then the size of each axis.
    """
    raw = decompressed(path)
    start = 4 + 4 * axes
    wanted = bytes([0, 0, 8, axes])
    if raw[:4] != wanted or len(raw) < start:
        raise ValueError(
            f"{path} must start with the IDX magic {wanted.hex()}, got {raw[:4].hex() or 'nothing'}"
            "; download it again"
        )
    shape = struct.unpack(f">{axes}I", raw[4:start])
    count = int(np.prod(shape, dtype=object))
    if len(raw) - start != count:
        raise ValueError(
            f"{path} must hold {count:,} bytes after its header, got {len(raw) - start:,}; "
            "download it again"
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)


def recipe(task: Task, request: Request, writer: Writer) -> None:
    """Read the four files, hold out validation by the protocol, and write."""
    source = task.source
    assert source is not None, "MNIST is read"
    images, labels = _pair(source, task, request, writer, "train")
    test_images, test_labels = _pair(source, task, request, writer, "test")
    rule, count = request.rules.validation, task.splits["validation"]
    rest, held = hold_out(labels, count, rule, request.seed, task.name)
    few = np.arange(len(test_labels))
    if task.mini:
        _, few = stratified(test_labels, task.splits["test"], request.seed, task.name, "test")
    parts = {
        "train": (images[rest], labels[rest]),
        "validation": (images[held], labels[held]),
        "test": (test_images[few], test_labels[few]),
    }
    writer.facts |= grey_facts(parts["train"][0])
    for split, (pixels, values) in parts.items():
        flat = pixels.reshape(len(pixels), -1)
        if request.rules.bit_reversed:
            flat = flat[:, bit_reversed(flat.shape[1])]
        joined = rows(flat)
        writer.append(split, joined.tokens, joined.lengths, values)


def bit_reversed(count: int) -> Array:
    """Return the sites 0 … count − 1 in the order of their reversed bits."""
    width = max(1, (count - 1).bit_length())
    order = [int(format(site, f"0{width}b")[::-1], 2) for site in range(1 << width)]
    return np.array([site for site in order if site < count], dtype=np.int64)


def _pair(
    source: Source, task: Task, request: Request, writer: Writer, split: str
) -> tuple[Array, Array]:
    """Return the images and labels of one split, images halved where the task wants it."""
    arrays = []
    for name, axes in zip(FILES[split], (3, 1), strict=True):
        names = [pattern.replace(FILES["train"][0], name) for pattern in source.patterns]
        path = source.find(request.data, names, task=task.name)
        if request.check:
            source.check(path)
        request.log(f"{task.name}: reading {path}")
        arrays.append(read_idx(path, axes))
        writer.add_source(path)
    images, labels = arrays
    if len(images) != len(labels):
        raise ValueError(
            f"{FILES[split][0]} must have as many images as there are labels, got "
            f"{len(images):,} and {len(labels):,}; download both again"
        )
    if labels.size and labels.max() >= task.classes:
        raise ValueError(
            f"{path} must have labels 0 … {task.classes - 1}, got {labels.max()}; download it again"
        )
    if images.shape[1:] != (28, 28):
        raise ValueError(f"{FILES[split][0]} must have 28×28 images, got {images.shape[1:]}")
    return halved(images) if task.mini else images, labels

import gzip
import io
import os
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from depthpde.data.protocol import rules_of
from depthpde.data.task import Request

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def official() -> Path:
    """The folder with real official files."""
    folder = Path(os.environ.get("DEPTHPDE_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not folder.is_dir():
        pytest.skip("no official files: set DEPTHPDE_DATA to the folder that holds them")
    return folder


@pytest.fixture
def request_of() -> Callable[..., Request]:
    def build(data: Path | None, family: str = "x", protocol: str = "strict", **more) -> Request:
        rules = rules_of("x", family, protocol)
        return Request(data=data, rules=rules, seed=0, workers=1, **more)

    return build


@pytest.fixture
def tar_of() -> Callable[..., Path]:
    """Write a tar with the given members: name → bytes, or a TarInfo type for a link."""

    def build(path: Path, members: dict[str, bytes | bytes], link: str = "") -> Path:
        mode = {".gz": "w:gz", ".xz": "w:xz"}.get(path.suffix, "w")
        with tarfile.open(path, mode) as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            if link:
                info = tarfile.TarInfo(link)
                info.type = tarfile.SYMTYPE
                info.linkname = "/etc/passwd"
                tar.addfile(info)
        return path

    return build


@pytest.fixture
def reviews() -> dict[str, bytes]:
    """A tiny aclImdb: 20 reviews of each kind, one of them longer than 256 bytes."""
    found = {"aclImdb/README": b"hello"}
    for split in ("train", "test"):
        for kind in ("neg", "pos"):
            for number in range(20):
                text = f"{kind} review {number} of {split}é ".encode() * (1 + 20 * (number == 3))
                found[f"aclImdb/{split}/{kind}/{number}_{number % 10}.txt"] = text
    return found


@pytest.fixture
def messages() -> dict[str, bytes]:
    """A tiny 20news-bydate: 20 groups, threads of two messages."""
    tops = ["comp.a", "rec.b", "sci.c", "talk.d"]
    groups = [f"{top}{chr(97 + each)}" for top in tops for each in range(5)]
    found = {}
    for split in ("train", "test"):
        for index, group in enumerate(groups):
            for number in range(6):
                content = (
                    f"From: someone@x.org\nSubject: Re: {split} thread {index} {number // 2}\n\n"
                    f"In article <1@x> somebody writes:\n> quoted {number}\n"
                    f"A body about {group} number {number}, long enough to be kept as a message.\n"
                    "And a second line.\n\n-- \nsigned\n"
                )
                name = f"20news-bydate-{split}/{group}/{1000 * index + number}"
                found[name] = content.encode("latin-1")
    return found


@pytest.fixture
def idx_folder(tmp_path: Path) -> Path:
    """A tiny MNIST in a folder named mnist: 60 training and 40 test images."""
    folder = tmp_path / "official" / "mnist"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for name, count in (("train", 60), ("t10k", 40)):
        images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            packed = gzip.compress(header + array.tobytes(), mtime=0)
            (folder / f"{name}-{kind}-ubyte.gz").write_bytes(packed)
    return folder

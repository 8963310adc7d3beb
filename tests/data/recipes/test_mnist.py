import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.mnist import bit_reversed, read_idx
from depthpde.data.tasks import TASKS


@pytest.fixture(autouse=True)
def small(monkeypatch):
    sizes = {"train": 50, "validation": 10, "test": 20}
    for name in ("mnist", "mnist-mini", "fashion-mnist"):
        monkeypatch.setitem(TASKS, name, dataclasses.replace(TASKS[name], splits=sizes))


def test_pixels_are_tokens_row_by_row(idx_folder: Path, tmp_path: Path) -> None:
    prepare("mnist", data=idx_folder.parent, out=tmp_path, check=False)
    images = read_idx(idx_folder / "t10k-images-idx3-ubyte.gz", 3)
    test = load("mnist", "test", out=tmp_path)
    assert len(test) == 40
    assert test.ids(3).tolist() == images[3].reshape(-1).tolist()
    assert len(load("mnist", "train", out=tmp_path)) == 50
    assert np.bincount(load("mnist", "validation", out=tmp_path).labels).tolist() == [1] * 10


def test_the_mini_task_is_half_as_wide(idx_folder: Path, tmp_path: Path) -> None:
    manifest = read_manifest(prepare("mnist-mini", data=idx_folder, out=tmp_path, check=False))
    images = read_idx(idx_folder / "t10k-images-idx3-ubyte.gz", 3).astype(int)
    test = load("mnist-mini", "test", out=tmp_path)
    halves = (
        images[:, ::2, ::2]
        + images[:, 1::2, ::2]
        + images[:, ::2, 1::2]
        + images[:, 1::2, 1::2]
        + 2
    ) // 4
    assert len(test) == 20
    assert test.ids(0).tolist() in halves.reshape(len(halves), -1).tolist()
    assert 0.4 < manifest["facts"]["pixel_mean"] < 0.6


def test_legacy_protocols_divide_and_permute_as_they_did(idx_folder: Path, tmp_path: Path) -> None:
    images = read_idx(idx_folder / "train-images-idx3-ubyte.gz", 3).reshape(60, -1)
    kept = {"data": idx_folder, "out": tmp_path, "check": False}
    prepare("mnist", **kept, protocol="lra-2020")
    held = load("mnist", "validation", out=tmp_path, protocol="lra-2020")
    assert held.ids(0).tolist() == images[50].tolist()
    assert held.mask_zero_pixels
    prepare("mnist", **kept, protocol="s4-2022")
    first = load("mnist", "train", out=tmp_path, protocol="s4-2022").ids(0)
    assert first.tolist() in images[:, bit_reversed(784)].tolist()


def test_bit_reversal_is_the_known_order() -> None:
    assert bit_reversed(8).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert bit_reversed(5).tolist() == [0, 4, 2, 1, 3]


def test_a_changed_file_is_refused_unless_asked_for(idx_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ubyte\.gz.*published MD5 f68b"):
        prepare("mnist", data=idx_folder, out=tmp_path)
    assert not read_manifest(prepare("mnist", data=idx_folder, out=tmp_path, check=False))[
        "checksums_checked"
    ]


def test_mnist_is_not_looked_for_in_a_folder_of_fashion(idx_folder: Path, tmp_path: Path) -> None:
    raw = idx_folder.parent / "FashionMNIST" / "raw"
    raw.parent.mkdir()
    idx_folder.rename(raw)
    with pytest.raises(FileNotFoundError, match="mnist needs MNIST"):
        prepare("mnist", data=raw.parents[1], out=tmp_path, check=False)


def test_fashion_is_not_looked_for_in_the_folder_of_mnist(idx_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="fashion-mnist needs Fashion-MNIST"):
        prepare("fashion-mnist", data=idx_folder.parent, out=tmp_path, check=False)
    idx_folder.rename(idx_folder.parent / "fashion")
    prepare("fashion-mnist", data=idx_folder.parent, out=tmp_path, check=False)
    assert len(load("fashion-mnist", "test", out=tmp_path)) == 40


def test_refuses_wrong_magic_wrong_size_and_a_cut_file(idx_folder: Path) -> None:
    path = idx_folder / "train-labels-idx1-ubyte.gz"
    raw = gzip.decompress(path.read_bytes())
    with pytest.raises(ValueError, match=r"must.*magic 00000803, got 00000801"):
        read_idx(path, 3)
    path.write_bytes(gzip.compress(raw[:-1]))
    with pytest.raises(ValueError, match=r"must hold 60.*header, got 59"):
        read_idx(path, 1)
    path.write_bytes(gzip.compress(raw)[:-12])
    with pytest.raises(ValueError, match="cut short or damaged"):
        read_idx(path, 1)


def test_refuses_labels_and_images_that_do_not_fit(idx_folder: Path, tmp_path: Path) -> None:
    labels = idx_folder / "train-labels-idx1-ubyte.gz"
    raw = gzip.decompress(labels.read_bytes())
    kept = {"data": idx_folder, "out": tmp_path, "check": False}
    labels.write_bytes(gzip.compress(raw[:-1] + b"\x0b"))
    with pytest.raises(ValueError, match="must have labels 0 … 9, got 11"):
        prepare("mnist", **kept)
    labels.write_bytes(gzip.compress(raw[:7] + bytes([59]) + raw[8:-1]))
    with pytest.raises(ValueError, match=r"as.*labels, got 60 and 59"):
        prepare("mnist", **kept)
    images = idx_folder / "train-images-idx3-ubyte.gz"
    labels.write_bytes(gzip.compress(raw))
    pixels = gzip.decompress(images.read_bytes())
    images.write_bytes(gzip.compress(pixels[:8] + bytes([0, 0, 0, 14, 0, 0, 0, 56]) + pixels[16:]))
    with pytest.raises(ValueError, match=r"must have 28×28 images, got \(14, 56\)"):
        prepare("mnist", **kept)
    assert not list(tmp_path.glob("*mnist*/manifest.json"))


@given(st.binary(max_size=64), st.booleans())
@settings(max_examples=200)
def test_any_bytes_are_read_or_refused(tmp_path_factory, raw: bytes, headed: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz-idx"
    path.write_bytes(bytes([0, 0, 8, 1]) * headed + raw)
    try:
        array = read_idx(path, 1)
    except ValueError:
        return
    assert array.size == len(raw) - 4


def test_the_real_digits_are_the_published_ones(
    official: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.undo()
    manifest = read_manifest(prepare("mnist", data=official, out=tmp_path))
    assert manifest["checksums_checked"]
    assert {name: entry["examples"] for name, entry in manifest["splits"].items()} == {
        "train": 54_000, "validation": 6_000, "test": 10_000
    }  # fmt: skip
    assert manifest["facts"]["pixel_mean"] == pytest.approx(0.1307, abs=2e-4)
    assert manifest["facts"]["pixel_spread"] == pytest.approx(0.3081, abs=2e-4)

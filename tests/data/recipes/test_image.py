import dataclasses
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.image import BATCHES, grey, grey_facts, halved, read_batches
from depthpde.data.tasks import TASKS


@pytest.fixture
def batches() -> dict[str, bytes]:
    """A tiny CIFAR-10: 20 images in each batch, in the binary form."""
    random = np.random.default_rng(0)
    found = {}
    for name in BATCHES:
        labels = (np.arange(20) % 10).astype(np.uint8)[:, None]
        pixels = random.integers(0, 256, (20, 3072), dtype=np.uint8)
        found[name] = np.concatenate([labels, pixels], axis=1).tobytes()
    return found


@pytest.fixture
def binary(tmp_path: Path, batches) -> Path:
    folder = tmp_path / "official" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name, record in batches.items():
        (folder / f"{name}.bin").write_bytes(record)
    return folder


def pickled(record: bytes) -> bytes:
    """One batch as the ``-py`` files have it: a dictionary of a pixel string and a label list."""
    table = np.frombuffer(record, dtype=np.uint8).reshape(-1, 3073)
    raw = table[:, 1:].tobytes()
    labels = table[:, 0].tolist()
    out = io.BytesIO()
    out.write(b"\x80\x02}(U\x04dataT" + len(raw).to_bytes(4, "little") + raw)
    out.write(b"U\x06labels](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e")
    out.write(b"U\x0bbatch_label(K\x05K\x06eu.")
    return out.getvalue()


def test_binary_folder_tar_and_pickles_read_alike(tmp_path, binary, batches, tar_of) -> None:
    tar = tar_of(
        tmp_path / "a.tar.gz",
        {f"cifar-10-batches-bin/{name}.bin": record for name, record in batches.items()},
    )
    python = tar_of(
        tmp_path / "b.tar.gz",
        {f"cifar-10-batches-py/{name}": pickled(record) for name, record in batches.items()},
    )
    wanted = read_batches(binary, check=False)
    for path in (tar, python):
        found = read_batches(path, check=False)
        for name in BATCHES:
            assert (found[name][0] == wanted[name][0]).all()
            assert (found[name][1] == wanted[name][1]).all()


def test_a_pickle_made_today_is_read_without_being_executed(tmp_path, batches) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, record in batches.items():
        table = np.frombuffer(record, dtype=np.uint8).reshape(-1, 3073)
        content = {"data": table[:, 1:].tobytes(), "labels": table[:, 0].tolist()}
        (folder / name).write_bytes(pickle.dumps(content))
    assert (read_batches(folder, check=False)["test_batch"][1] == np.arange(20) % 10).all()
    (folder / "test_batch").write_bytes(
        b"cos\nsystem\n(S'touch " + str(tmp_path).encode() + b"/x'\ntR."
    )
    with pytest.raises(ValueError, match=r"must.*images, got 0 and 0"):
        read_batches(folder, check=False)
    assert not (tmp_path / "x").exists()


def test_grey_is_the_weighted_mean_and_halving_the_mean_of_four() -> None:
    colours = np.zeros((1, 3, 32, 32), dtype=np.uint8)
    colours[0, :, 0, 0] = 255, 0, 0
    colours[0, :, 0, 1] = 10, 20, 30
    assert grey(colours)[0, 0, :3].tolist() == [76, 18, 0]
    assert halved(np.array([[[1, 2], [3, 5]]], dtype=np.uint8)).tolist() == [[[3]]]
    facts = grey_facts(np.array([0, 255], dtype=np.uint8))
    assert facts == {"pixel_mean": 0.5, "pixel_spread": 0.5}


def test_splits_and_legacy_validation(binary, batches, tmp_path, monkeypatch) -> None:
    sizes = {"train": 90, "validation": 10, "test": 20}
    monkeypatch.setitem(TASKS, "image", dataclasses.replace(TASKS["image"], splits=sizes))
    kept = {"data": binary.parent, "out": tmp_path, "check": False}
    prepare("image", **kept)
    assert np.bincount(load("image", "validation", out=tmp_path).labels).tolist() == [1] * 10
    assert not load("image", "train", out=tmp_path).mask_zero_pixels
    manifest = read_manifest(prepare("image", **kept, protocol="nystrom-2021"))
    last = load("image", "validation", out=tmp_path, protocol="nystrom-2021")
    wanted = grey(read_batches(binary, check=False)["data_batch_5"][0])[10].reshape(-1)
    assert last.ids(0).tolist() == wanted.tolist()
    assert manifest["vocabulary"] == 512
    assert last.mask_zero_pixels


def test_refuses_batches_that_are_wrong_missing_or_cut(binary: Path) -> None:
    with pytest.raises(ValueError, match=r"data_batch_1 of .* must have the published MD5 5dd7e0"):
        read_batches(binary)
    raw = (binary / "data_batch_2.bin").read_bytes()
    (binary / "data_batch_2.bin").write_bytes(raw[:-1])
    with pytest.raises(
        ValueError, match=r"data_batch_2\.bin of .* must hold records of 3073 bytes"
    ):
        read_batches(binary, check=False)
    (binary / "data_batch_2.bin").write_bytes(b"\x0a" + raw[1:])
    with pytest.raises(ValueError, match=r"data_batch_2 of .* must have labels 0 … 9, got 10"):
        read_batches(binary, check=False)
    (binary / "data_batch_2.bin").unlink()
    with pytest.raises(ValueError, match="lacks data_batch_2; unpack the whole archive"):
        read_batches(binary, check=False)


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_pickle_is_refused_by_name(tmp_path_factory, raw: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "cifar-10-batches-py"
    folder.mkdir(exist_ok=True)
    (folder / "data_batch_1").write_bytes(raw)
    with pytest.raises(
        ValueError, match=r"data_batch_1 of .*(is not a CIFAR-10 batch|must hold as)"
    ):
        read_batches(folder, check=False)


def test_refuses_damaged_sheets(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    np.savez(tmp_path / "sheets.npz", nothing=np.zeros(3))
    with pytest.raises(ValueError, match=r"sheets\.npz is damaged .* copy it again"):
        read_batches(tmp_path / "sheets.npz")
    (tmp_path / "sheets.npz").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(ValueError, match=r"sheets\.npz is damaged"):
        read_batches(tmp_path / "sheets.npz")


def test_sheets_without_pillow_name_the_extra(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    np.savez(tmp_path / "sheets.npz", nothing=np.zeros(3))
    with pytest.raises(ValueError, match=r"need Pillow: pip install 'depthpde\[data\]'"):
        read_batches(tmp_path / "sheets.npz")


def test_the_real_images_have_the_published_checksums(official: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    manifest = read_manifest(prepare("image", data=official, out=tmp_path))
    assert manifest["checksums_checked"]
    assert manifest["splits"]["train"]["examples"] == 45_000
    # The constants of the real-valued variant in the literature: 122.6 / 255 and 61.0 / 255.
    assert manifest["facts"]["pixel_mean"] * 255 == pytest.approx(122.6, abs=0.5)
    assert manifest["facts"]["pixel_spread"] * 255 == pytest.approx(61.0, abs=0.6)

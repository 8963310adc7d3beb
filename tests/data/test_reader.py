import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.reader import (
    default_out,
    how_to_prepare,
    misfits,
    prepare_command,
    problems,
    read_manifest,
    read_split,
)
from depthpde.data.writer import MANIFEST, Writer

HEADER = {"task": "x", "kind": "sequence", "shift": 1, "length": 9, "classes": 3, "vocabulary": 9}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Writer(tmp_path / "x") as writer:
        writer.append("train", np.arange(9, dtype=np.uint8), np.array([4, 5]), np.array([0, 2]))
        return writer.finish(HEADER)


def change(folder: Path, **entries: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | entries))


def test_a_folder_without_manifest_is_not_prepared(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"not prepared .* run: depthpde data prepare y"):
        read_manifest(tmp_path / "y")


def test_refuses_a_manifest_of_another_version(folder: Path) -> None:
    change(folder, format=99)
    with pytest.raises(ValueError, match=r"manifest\.json.*format 1, got 99; run: dep"):
        read_manifest(folder)


def test_refuses_a_manifest_that_lacks_entries(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["shift"]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"manifest\.json lacks shift"):
        read_manifest(folder)


def test_refuses_a_manifest_whose_columns_make_no_sense(folder: Path) -> None:
    change(folder, columns={"train.tokens.u8": {"type": "f99", "count": 2, "sha256": ""}})
    with pytest.raises(ValueError, match="does not describe its columns"):
        read_split(folder, "train")
    change(folder, columns={"../train.tokens.u8": {"type": "u8", "count": 2, "sha256": ""}})
    with pytest.raises(ValueError, match="does not describe its columns"):
        read_split(folder, "train")


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
@settings(max_examples=100)
def test_any_manifest_is_read_or_refused(tmp_path_factory, raw: bytes) -> None:
    place = tmp_path_factory.getbasetemp() / "fuzz"
    place.mkdir(exist_ok=True)
    (place / MANIFEST).write_bytes(raw)
    with pytest.raises(ValueError, match=r"manifest\.json (is not a manifest|must be of format)"):
        read_manifest(place)


def test_refuses_a_file_of_another_size(folder: Path) -> None:
    (folder / "train.tokens.u8").write_bytes(b"123")
    with pytest.raises(ValueError, match=r"train\.tokens\.u8 must have 9 bytes, got 3; run: dep"):
        read_split(folder, "train")


def test_refuses_a_missing_file_and_an_unknown_split(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"`split`.*got 'trian'"):
        read_split(folder, "trian")
    (folder / "train.labels.u8").unlink()
    with pytest.raises(FileNotFoundError, match=r"train\.labels\.u8 is missing; run: depthpde"):
        read_split(folder, "train")


def test_advice_names_the_folder_unless_it_is_the_default_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert how_to_prepare(default_out() / "text") == "depthpde data prepare text"
    there = f"depthpde data prepare text --protocol lra-2020 --force --out {tmp_path}"
    assert how_to_prepare(tmp_path / "text@lra-2020", "--force") == there
    assert prepare_command(Path("my data"), "--all-mini").endswith("--all-mini --out 'my data'")


def test_a_file_of_another_size_is_seen_without_reading_it(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert misfits(folder, manifest) == []
    (folder / "train.tokens.u8").write_bytes(b"")
    (folder / "train.labels.u8").unlink()
    assert sorted(misfits(folder, manifest)) == [
        f"{folder}/train.labels.u8 is missing",
        f"{folder}/train.tokens.u8 must have 9 bytes, got 0",
    ]


def test_a_changed_byte_a_missing_file_and_a_bad_manifest_are_found(folder: Path) -> None:
    tokens = folder / "train.tokens.u8"
    raw = tokens.read_bytes()
    tokens.write_bytes(raw[:-1] + b"\xff")
    assert "has changed since it was prepared" in problems(folder)[0]
    tokens.unlink()
    assert "train.tokens.u8 is missing" in problems(folder)[0]
    (folder / MANIFEST).write_text("{")
    assert "is not a manifest" in problems(folder)[0]


def test_the_last_problem_says_what_to_do_about_all(folder: Path) -> None:
    for name in ("train.tokens.u8", "train.labels.u8"):
        (folder / name).write_bytes(b"")
    first, last = problems(folder)
    assert "run:" not in first
    assert last.endswith(f"; run: depthpde data prepare x --force --out {folder.parent}")


def test_arrays_that_contradict_the_manifest_are_found(folder: Path) -> None:
    change(folder, classes=2)
    (printed,) = problems(folder)
    assert printed.startswith(f"{folder}: train has a label outside 0 … 1; run: ")
    with Writer(folder) as writer:
        writer.append("train", np.zeros(3, np.uint8), np.array([3]), np.array([0]))
        writer._columns["train.offsets"].append(np.array([2]))
        writer.finish(HEADER)
    (printed,) = problems(folder)
    assert printed.startswith(f"{folder}: the offsets of train do not cover its tokens; run: ")


def test_a_pair_beyond_its_documents_is_found(tmp_path: Path) -> None:
    with Writer(tmp_path / "x") as writer:
        writer.append("documents", np.zeros(3, np.uint8), np.array([3]), None)
        writer.append_pairs("train", np.array([[0, 7]]), np.array([1]))
        folder = writer.finish(HEADER | {"kind": "pair"})
    (printed,) = problems(folder)
    assert printed.startswith(f"{folder}: train has a pair beyond its documents; run: ")


def test_a_flipped_bit_is_refused_on_first_use_and_after_a_change(folder: Path) -> None:
    assert len(read_split(folder, "train")) == 2
    for file in ("train.tokens.u8", "train.labels.u8"):
        path = folder / file
        right = path.read_bytes()
        path.write_bytes(bytes([right[0] ^ 1]) + right[1:])
        with pytest.raises(ValueError, match=f"{file} must have the SHA-256 .* --force"):
            read_split(folder, "train")
        path.write_bytes(right)
    assert len(read_split(folder, "train")) == 2

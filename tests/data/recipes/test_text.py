from pathlib import Path

import numpy as np
import pytest

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.text import alphabet_of, in_characters, read_reviews
from depthpde.data.tasks import TASKS


@pytest.fixture
def folder(tmp_path: Path, reviews) -> Path:
    for name, content in reviews.items():
        (tmp_path / "official" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "official" / name).write_bytes(content)
    return tmp_path / "official"


@pytest.fixture
def small(monkeypatch):
    """The tasks at the size of the tiny folder."""
    import dataclasses

    sizes = {"train": 32, "validation": 8, "test": 10}
    for name in ("text", "text-mini"):
        monkeypatch.setitem(TASKS, name, dataclasses.replace(TASKS[name], splits=sizes))


def test_a_folder_and_a_tar_in_any_order_read_alike(tmp_path, folder, reviews, tar_of) -> None:
    tar = tar_of(tmp_path / "a.tar.xz", dict(reversed(reviews.items())))
    one, two = (read_reviews(path, check=False) for path in (folder / "aclImdb", tar))
    assert one["train"][0] == two["train"][0]
    assert one["test"][1].tolist() == two["test"][1].tolist() == [0] * 20 + [1] * 20
    assert one["train"][0][2].startswith(b"neg review 2 of train")


def test_the_manifest_knows_the_content_whatever_it_came_in(
    tmp_path, folder, reviews, tar_of, small
) -> None:
    (tmp_path / "packed").mkdir()
    tar_of(tmp_path / "packed" / "aclImdb.tar.xz", reviews)
    one, two = (
        read_manifest(prepare("text", data=data, out=tmp_path / data.name / "out", check=False))
        for data in (folder, tmp_path / "packed")
    )
    assert one["sources"][0]["content_sha256"] == two["sources"][0]["content_sha256"]
    assert one["columns"] == two["columns"]


def test_validation_is_held_out_of_train_and_stratified(folder, tmp_path, small) -> None:
    prepare("text", data=folder, out=tmp_path / "out", check=False)
    parts = {
        name: load("text", name, out=tmp_path / "out") for name in ("train", "validation", "test")
    }
    texts = {
        name: {part.ids(each).tobytes() for each in range(len(part))}
        for name, part in parts.items()
    }
    assert {name: len(part) for name, part in parts.items()} == {
        "train": 32, "validation": 8, "test": 40
    }  # fmt: skip
    assert np.bincount(parts["validation"].labels).tolist() == [4, 4]
    assert not texts["train"] & texts["validation"]
    assert not texts["test"] & (texts["train"] | texts["validation"])


def test_a_token_is_a_byte_plus_one_and_a_mini_is_cut(folder, tmp_path, small, reviews) -> None:
    prepare("text-mini", data=folder, out=tmp_path / "out", check=False)
    test = load("text-mini", "test", out=tmp_path / "out")
    assert len(test) == 10
    assert test.lengths().max() <= 256
    first = bytes((test.ids(0) - 1).astype(np.uint8).tolist())
    assert any(text.startswith(first) for text in reviews.values())


def test_the_oldest_protocol_validates_on_test_and_the_record_says_so(
    folder, tmp_path, small
) -> None:
    made = prepare("text", data=folder, out=tmp_path / "out", check=False, protocol="lra-2020")
    manifest = read_manifest(made)
    assert made.name == "text@lra-2020"
    assert manifest["columns"]["validation.tokens.u8"] == manifest["columns"]["test.tokens.u8"]
    assert "selected on test" in manifest["differences"][0]
    assert (manifest["length"], manifest["padding"]) == (1000, 1000)


def test_the_s4_protocol_reads_characters(folder, tmp_path, small) -> None:
    made = prepare("text", data=folder, out=tmp_path / "out", check=False, protocol="s4-2022")
    split = load("text", "train", out=tmp_path / "out", protocol="s4-2022")
    manifest = read_manifest(made)
    assert split.ids(0)[-1] == 2
    assert split.ids(0).max() < manifest["vocabulary"] < 60
    assert len(split) == 40


def test_rare_characters_are_unknown() -> None:
    alphabet = alphabet_of([b"ab" * 15 + b"c" * 20, "é".encode()], 31)
    assert sorted(alphabet) == ["a", "b"]
    assert in_characters(["aéb".encode()], alphabet, 9).tokens.tolist() == [2, 0, 3, 1]
    assert in_characters([b"aaaa"], alphabet, 3).tokens.tolist() == [2, 2, 1]


def test_refuses_an_alphabet_too_large_for_a_byte() -> None:
    text = "".join(chr(0x4E00 + each) for each in range(300)) * 15
    with pytest.raises(ValueError, match="at most 250 characters, got 300"):
        alphabet_of([text.encode()], 9999)


def test_refuses_an_empty_folder_and_a_wrong_number_of_reviews(tmp_path, folder) -> None:
    with pytest.raises(ValueError, match="must hold 12,500 reviews in train/neg, got 20"):
        read_reviews(folder / "aclImdb")
    (tmp_path / "empty" / "aclImdb").mkdir(parents=True)
    with pytest.raises(ValueError, match="got 0; unpack the whole archive"):
        read_reviews(tmp_path / "empty" / "aclImdb", check=False)


@pytest.mark.drill
def test_the_real_reviews_are_all_there(official: Path) -> None:
    found = read_reviews(official / "imdb" / "aclImdb_v1_labelled_text.tar.xz")
    for texts, labels in found.values():
        assert len(texts) == 25_000
        assert labels.mean() == 0.5
    assert 1_000 < np.mean([len(text) for text in found["train"][0]]) < 1_700
    # The published code has 135 symbols (with padding, unknown, end) on another copy of the texts.
    assert abs(len(alphabet_of(found["train"][0], 4096)) + 3 - 135) <= 1

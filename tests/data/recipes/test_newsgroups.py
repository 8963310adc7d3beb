import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.newsgroups import body, read_messages, subject
from depthpde.data.tasks import TASKS

MESSAGE = b"""From: a@b.org
Subject: RE: Re[2]: Motorcycles

In article <1@b.org> Bob writes:
> a quoted line
| another quoted line
The first own line.

The last own line.

--
Bob, bob@b.org
"""


@pytest.fixture
def tar(tmp_path: Path, messages, tar_of, monkeypatch) -> Path:
    sizes = {"train": 100, "validation": 20, "test": 40}
    for name in ("newsgroups", "newsgroups-raw", "newsgroups-mini"):
        monkeypatch.setitem(TASKS, name, dataclasses.replace(TASKS[name], splits=sizes))
    (tmp_path / "official").mkdir()
    return tar_of(tmp_path / "official" / "20news-bydate.tar.gz", messages)


def test_headers_quotes_and_signature_are_removed() -> None:
    assert body(MESSAGE) == b"The first own line.\n\nThe last own line."


def test_the_subject_is_freed_of_replies() -> None:
    assert subject(MESSAGE) == b"motorcycles"
    assert subject(b"no headers at all") == b""


@given(st.binary(max_size=500))
def test_any_message_has_a_body_and_a_subject(raw: bytes) -> None:
    assert len(body(raw)) <= len(raw)
    assert len(subject(raw)) <= len(raw)


def test_groups_are_classes_and_validation_is_stratified(tar: Path, tmp_path: Path) -> None:
    manifest = read_manifest(prepare("newsgroups", data=tar.parent, out=tmp_path, check=False))
    train, held = (load("newsgroups", name, out=tmp_path) for name in ("train", "validation"))
    assert len(manifest["facts"]["class_names"]) == 20
    assert np.bincount(held.labels).tolist() == [1] * 20
    text = bytes((train.ids(0) - 1).astype(np.uint8).tolist())
    assert text.startswith(b"A body about comp.aa")
    assert b"quoted" not in text
    assert b"signed" not in text


def test_the_raw_task_keeps_everything(tar: Path, tmp_path: Path) -> None:
    prepare("newsgroups-raw", data=tar.parent, out=tmp_path, check=False)
    split = load("newsgroups-raw", "test", out=tmp_path)
    text = bytes((split.ids(0) - 1).astype(np.uint8).tolist())
    assert text.startswith(b"From: someone")
    assert b"quoted" in text


def test_the_mini_task_has_four_topics(tar: Path, tmp_path: Path) -> None:
    prepare("newsgroups-mini", data=tar.parent, out=tmp_path, check=False)
    assert np.bincount(load("newsgroups-mini", "test", out=tmp_path).labels).tolist() == [10] * 4


def test_folders_read_like_the_tar(tar: Path, tmp_path: Path, messages) -> None:
    for name, content in messages.items():
        (tmp_path / "folders" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folders" / name).write_bytes(content)
    assert read_messages(tmp_path / "folders", check=False) == read_messages(tar, check=False)
    one = prepare("newsgroups", data=tmp_path / "folders", out=tmp_path / "one", check=False)
    two = prepare("newsgroups", data=tar.parent, out=tmp_path / "two", check=False)
    assert read_manifest(one)["columns"] == read_manifest(two)["columns"]


def test_refuses_an_incomplete_archive(tar: Path, tmp_path: Path, messages, tar_of) -> None:
    with pytest.raises(
        ValueError, match="must hold 11,314 messages in 20news-bydate-train, got 120"
    ):
        read_messages(tar)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="got 0; unpack the whole archive"):
        read_messages(tmp_path / "empty", check=False)
    some = {name: each for name, each in messages.items() if "comp." not in name}
    tar_of(tar, some)
    with pytest.raises(ValueError, match=r"`classes`.*be 20, got 15 groups"):
        prepare("newsgroups", data=tar.parent, out=tmp_path, check=False)


def test_the_real_messages_are_all_there(official: Path, tmp_path: Path) -> None:
    manifest = read_manifest(prepare("newsgroups", data=official, out=tmp_path))
    assert {name: each["examples"] for name, each in manifest["splits"].items()} == {
        "train": 10_183, "validation": 1_131, "test": 7_532
    }  # fmt: skip
    assert manifest["facts"]["class_names"][0] == "alt.atheism"
    assert manifest["facts"]["empty_after_removal"] < 0.04 * 18_846

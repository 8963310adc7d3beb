from pathlib import Path

import numpy as np
import pytest

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.pairs import pair_up, words

GROUPS = [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9, 10]]
HOME = {member: index for index, group in enumerate(GROUPS) for member in group}


def test_labels_say_whether_both_are_of_one_group_and_are_balanced() -> None:
    pairs, labels = pair_up(GROUPS, 1000, 3)
    same = np.array([HOME[a] == HOME[b] for a, b in pairs.tolist()])
    assert (same == labels).all()
    assert labels.sum() == 500
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_no_single_member_tells_the_label() -> None:
    pairs, labels = pair_up(GROUPS, 40_000, 3)
    for side in (0, 1):
        share = [labels[pairs[:, side] == member].mean() for member in HOME]
        assert np.abs(np.array(share) - 0.5).max() < 0.05


def test_the_same_key_gives_the_same_pairs() -> None:
    assert (pair_up(GROUPS, 50, 3)[0] == pair_up(GROUPS, 50, 3)[0]).all()
    assert (pair_up(GROUPS, 50, 3)[0] != pair_up(GROUPS, 50, 4)[0]).any()


def test_refuses_a_single_group() -> None:
    with pytest.raises(ValueError, match=r"`groups`.*2.*got 1"):
        pair_up(GROUPS[:1], 10, 0)


def test_a_quotation_reads_like_its_original() -> None:
    asked = b"Subject: cars\nFrom: a@b\n\nWhich one is   faster,\nand why?\n"
    answer = (
        b"Subject: Re: cars\n\nIn article <1@b>, a@b (A) writes:\n> Which one is faster,\n"
        b"AB> and why?\n\nThe red one: it is red.\n"
    )
    again = b"Subject: Re: cars\n\nC wrote:\n\n: > Which one is faster,\n: > and why?\n| No.\n"
    assert words(asked) == b"Which one is faster, and why?"
    assert words(answer) == words(asked) + b" The red one: it is red."
    assert words(again) == words(asked) + b" No."


def test_threads_of_one_split_do_not_occur_in_another(tmp_path: Path, messages, tar_of) -> None:
    (tmp_path / "official").mkdir()
    tar_of(tmp_path / "official" / "20news-bydate.tar.gz", messages)
    kept = {"data": tmp_path / "official", "out": tmp_path}
    manifest = read_manifest(prepare("retrieval-mini", **kept, check=False))
    parts = {
        name: load("retrieval-mini", name, out=tmp_path) for name in ("train", "validation", "test")
    }
    used = {name: set(part.pairs.reshape(-1).tolist()) for name, part in parts.items()}
    assert not used["train"] & used["validation"]
    assert not used["train"] & used["test"]
    assert manifest["facts"]["train_threads"] + manifest["facts"]["validation_threads"] == 60
    assert len(parts["test"]) == 4_000
    text = bytes((parts["test"].ids(0) - 1).astype(np.uint8).tolist())
    assert b"Subject" not in text

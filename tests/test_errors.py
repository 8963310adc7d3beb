from __future__ import annotations

import os

import pytest
import torch

from depthpde import errors
from depthpde.operators.stability import Scheme


def test_positive_numbers_pass_and_others_are_refused():
    assert errors.check_positive("steps", 3) == 3
    with pytest.raises(ValueError, match=r"`steps` must be at least 1, got 0"):
        errors.check_positive("steps", 0)
    for bad in (1.5, True, "4"):
        with pytest.raises(ValueError, match=r"`steps` must be a whole number of at least 1, got"):
            errors.check_positive("steps", bad)


def test_range_names_the_interval_and_the_advice():
    assert errors.check_range("ratio", 0.5, 0, 1) == 0.5
    with pytest.raises(ValueError, match=r"`ratio` must lie in \[0, 1\], got 2; be smaller"):
        errors.check_range("ratio", 2, 0, 1, advice="be smaller")
    for bad in (float("nan"), float("inf"), "1", True):
        with pytest.raises(ValueError, match=r"`ratio` must be a finite number, got"):
            errors.check_range("ratio", bad, 0, 1)


def test_a_wrong_name_lists_the_set_and_the_nearest():
    assert errors.check_one_of("scheme", "exact", Scheme) is Scheme.EXACT
    assert errors.check_one_of("scheme", Scheme.UPWIND, Scheme) is Scheme.UPWIND
    with pytest.raises(
        ValueError, match=r"one of explicit, .*, got 'explict'; did you mean 'explicit'\?"
    ):
        errors.check_one_of("scheme", "explict", Scheme)
    with pytest.raises(ValueError, match=r"got 'zzz'$"):
        errors.check_name("scheme", "zzz", Scheme)


def test_a_name_is_suggested_only_where_it_is_near():
    names = ["learning_rate", "floor", "clip"]
    assert errors.nearest("lerning_rate", names) == "learning_rate"
    assert errors.nearest("flor", names) == "floor"
    assert errors.nearest("lr", names) is None
    with pytest.raises(ValueError, match=r"one of learning_rate, floor, clip, got 'lr'$"):
        errors.check_name("key", "lr", names)


def test_a_folder_that_can_be_made_and_written_passes_and_nothing_is_made(tmp_path):
    for folder in (tmp_path, tmp_path / "a" / "b"):
        assert errors.check_folder("--out", folder) == folder
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("inside", ["", "below/that"])
def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path, inside):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        OSError,
        match=r"^`--out` must be a folder that can be written, got .*file.* \(Not a directory\); "
        "choose another$",
    ):
        errors.check_folder("--out", tmp_path / "file" / inside)


def test_a_folder_without_write_permission_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    tmp_path.chmod(0o755)
    number = os.fork()
    if not number:  # root may write anywhere, so a child is nobody
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            errors.check_folder("--out", closed)
        except OSError as error:
            os._exit(7 if "(Permission denied); choose another" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 7


@pytest.mark.parametrize(
    ("u", "message"),
    [
        (torch.zeros(3, 4), r"field \[batch, length, dim\], got 2 axes \[3, 4\]; add or merge"),
        (torch.zeros(1, 2, 3, dtype=torch.int64), r"floating-point numbers, got torch.int64; use"),
        (torch.zeros(2, 0, 3), r"at least one site, got length 0 in \[2, 0, 3\]"),
        (torch.zeros(2, 5, 3), r"must have 4 features on its last axis, got 3 in \[2, 5, 3\]; bu"),
    ],
)
def test_a_bad_field_is_refused(u, message):
    with pytest.raises(ValueError, match=message):
        errors.check_field("u", u, dim=4)


def test_a_bad_mask_is_refused():
    u = torch.zeros(2, 5, 3)
    good = torch.ones(2, 5, dtype=torch.bool)
    assert errors.check_mask("valid_mask", good, u) is good
    with pytest.raises(ValueError, match=r"boolean with True for real tokens, got torch.float32"):
        errors.check_mask("valid_mask", good.float(), u)
    with pytest.raises(ValueError, match=r"shape \[batch, length\] = \[2, 5\], got \[2, 4\]"):
        errors.check_mask("valid_mask", good[:, :4], u)


def test_a_table_names_the_nearest_of_its_names():
    table = errors.NameTable("task", {"listops": 1, "text": 2})
    assert table["text"] == 2
    assert table.get("texts") is None
    with pytest.raises(KeyError, match="did you mean 'listops'") as found:
        table["listop"]
    assert str(found.value).startswith("`task` must be one of listops, text, got 'listop'")

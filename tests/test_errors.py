from __future__ import annotations

import os

import pytest
import torch

from depthpde import errors
from depthpde.operators.stability import Scheme


def test_positive_numbers_pass_and_others_are_refused():
    assert errors.check_positive("steps", 3) == 3
    with pytest.raises(ValueError, match=r"`steps`.*1.*got 0"):
        errors.check_positive("steps", 0)
    for bad in (1.5, True, "4"):
        with pytest.raises(ValueError, match=r"`steps`.*least 1, got"):
            errors.check_positive("steps", bad)


def test_range_names_the_interval_and_the_advice():
    assert errors.check_range("ratio", 0.5, 0, 1) == 0.5
    with pytest.raises(ValueError, match=r"`ratio`.*\[0, 1\].*got 2; be smaller"):
        errors.check_range("ratio", 2, 0, 1, advice="be smaller")
    for bad in (float("nan"), float("inf"), "1", True):
        with pytest.raises(ValueError, match=r"`ratio`.*number, got"):
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
        match=r"^`--out`.*got .*file.* \(Not a directory\); "
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
    with pytest.raises(ValueError, match=r"boolean.*tokens, got torch.float32"):
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


def test_a_name_that_becomes_part_of_another_is_an_identifier():
    assert errors.check_identifier("name", "first_try") == "first_try"
    for bad in ("a.b", "", "1st", 3):
        with pytest.raises(ValueError, match=r"`name` must be letters, digits and underscores"):
            errors.check_identifier("name", bad)


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        (lambda: errors.check_tensor("u", [1.0]), r"`u` must be a tensor, got \[1.0\] \(list\)"),
        (lambda: errors.check_tensor("u", torch.ones(2).to_sparse()), "must be a dense tensor"),
        (
            lambda: errors.check_tensor("u", torch.ones(2, device="meta")),
            "got a tensor on the meta",
        ),
        (
            lambda: errors.check_tensor("u", torch.ones(2), torch.ones(2, device="meta")),
            "must be on the device of the field, meta, got cpu",
        ),
        (
            lambda: errors.check_field("u", torch.ones(1, 2, 3).to(torch.float8_e5m2)),
            "16 bits or more",
        ),
        (lambda: errors.check_flag("causal", 1), r"`causal` must be True or False, got 1 \(int\)"),
        (
            lambda: errors.check_positive("steps", 10**30),
            "must be at most 1,000,000,000, got 1e[+]30",
        ),
        (lambda: errors.check_range("rate", 10**400, 0, 1), "must be a finite number"),
        (lambda: errors.check_whole("seed", -1), "must be a whole number from 0"),
        (lambda: errors.check_module("model", int), "must be a torch.nn.Module, got <class 'int'>"),
        (lambda: errors.check_grid("grid", (2,)), r"must be rows and columns, .* got \(2,\)"),
        (lambda: errors.check_factory("gpu", None), "`device` must be a device of this machine"),
        (lambda: errors.check_factory("cpu", torch.long), "`dtype` must be one of torch.float16"),
        (
            lambda: errors.check_precision("u", torch.ones(1).double(), torch.ones(1)),
            "must have the precision of the layer, torch.float32, got torch.float64",
        ),
        (
            lambda: errors.check_name("kind", {"a"}, ["a", "b"]),
            r"must be one of a, b, got \{'a'\} \(set\)",
        ),
    ],
)
def test_what_fits_no_argument_is_refused_in_words(call, printed):
    with pytest.raises(ValueError, match=printed):
        call()


def test_what_cannot_be_shown_is_still_named():
    class Shy:
        def __repr__(self):
            raise RuntimeError

    assert errors.shown(Shy()) == "something that cannot be shown (Shy)"
    assert errors.shown(10**5000).endswith("(int)")


def test_a_precision_that_autocast_brings_about_is_no_mistake():
    with torch.autocast("cpu", torch.bfloat16):
        errors.check_precision("u", torch.ones(1).bfloat16(), torch.ones(1))

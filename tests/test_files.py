"""A file is there whole or not at all."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from depthpde import files
from depthpde.files import (
    file_digest,
    local_names,
    parse_json,
    place_folder,
    read_json,
    read_plain,
    write_json,
    write_whole,
)


def test_a_file_is_replaced_as_a_whole_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_a_write_that_fails_leaves_the_old_file_and_no_part_of_the_new(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))  # as a disk that is full
    try:
        with pytest.raises(OSError, match="File too large"):
            write_whole(path, "x" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_text_that_cannot_be_encoded_leaves_the_old_file_alone(tmp_path):
    path = write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_json_refuses_what_json_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_plain_file_is_read_up_to_its_limit(tmp_path):
    path = write_whole(tmp_path / "a", "12345")
    assert read_plain(path, 5) == b"12345"
    with pytest.raises(ValueError, match="at most 4 bytes, got 5"):
        read_plain(path, 4)


def test_what_would_never_end_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(10 * 2**30)
    for name, word in (("pipe", "a pipe"), ("zero", "a device"), ("sparse", "10,737,418,240")):
        with pytest.raises(ValueError, match=word):
            read_plain(tmp_path / name)
    with pytest.raises(ValueError, match="a folder"):
        read_plain(tmp_path)
    with pytest.raises(ValueError, match="regular file, got a pipe"):
        file_digest(tmp_path / "pipe")


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1" + 400 * "0", "1" + 5000 * "0", "NaN"])
def test_a_number_that_nobody_can_count_with_is_no_json(text):
    with pytest.raises(ValueError, match="number must"):
        parse_json(f'{{"a": [{text}]}}')


def test_a_curve_may_hold_what_a_diverged_loss_is():
    assert parse_json("[NaN, Infinity, 3]", constants=True)[1] == float("inf")
    assert parse_json(str(2**64 - 1)) == 2**64 - 1


def test_no_number_escapes_because_its_text_looked_harmless():
    by = random.Random(0)
    careful = files._DECODERS[True, True]
    refused = 0
    for _ in range(5000):
        digits = "".join(
            by.choices("0123456789", k=by.choice((1, 2, 17, 18, 19, 20, 21, 308, 309)))
        )
        number = by.choice(("", "-")) + (digits.lstrip("0") or "0")
        number += by.choice(("", ".5", ".0000000012345678901234567"))
        number += by.choice(("", "", "e5", "E+99", "e-400", "e290", "E+0309", "e+1000"))
        text = by.choice(("{}", "[{}]", '{{"a":{}}}', '{{"a" :\n\t{}\r}}', "[1,{}]")).format(number)
        try:
            wanted = careful.decode(text)
        except ValueError as error:
            refused += 1
            with pytest.raises(ValueError, match="number must") as raised:
                parse_json(text, constants=True)
            assert str(raised.value) == str(error)  # noqa: PT017
        else:
            assert repr(parse_json(text, constants=True)) == repr(wanted)
    assert 1000 < refused < 4000  # both kinds were tried


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a", "12345")
    short = SimpleNamespace(st_size=2, st_mode=path.stat().st_mode)
    monkeypatch.setattr(os, "fstat", lambda _: short)
    assert read_plain(path) == b"12345"
    with pytest.raises(ValueError, match="at most 4 bytes, got 5"):
        read_plain(path, 4)


def test_json_that_is_nested_too_deeply_is_an_error_of_the_file(tmp_path):
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(write_whole(tmp_path / "a.json", "[" * 100_000))


def test_a_digest_is_kept_until_the_file_changes(tmp_path):
    path = write_whole(tmp_path / "a", "one")
    assert file_digest(path) == hashlib.sha256(b"one").hexdigest()
    write_whole(path, "two")
    assert file_digest(path) == hashlib.sha256(b"two").hexdigest()


def test_a_folder_is_replaced_as_a_whole_with_one_mode(tmp_path):
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        write_whole(tmp_path / name / f"{name}.txt", name).chmod(0o600)
    place_folder(tmp_path / "new", tmp_path / "old", 0o640)
    (only,) = (tmp_path / "old").iterdir()
    assert (only.name, only.stat().st_mode & 0o777) == ("new.txt", 0o640)
    assert not (tmp_path / "new").exists()


def test_files_are_named_from_a_folder_on_and_no_other_path_is_shortened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"r/a.json, {tmp_path}/r/b.json and ({tmp_path}/r/c), not other/r/d, her/e or /r/f"
    assert local_names(text, Path("r")) == "a.json, b.json and (c), not other/r/d, her/e or /r/f"
    assert local_names(text, tmp_path / "r").startswith("r/a.json, b.json and (c), not")

"""A file is there whole or not at all."""

from __future__ import annotations

import os
import resource
import signal

import pytest

from depthpde.files import write_json, write_whole


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

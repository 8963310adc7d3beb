import gzip
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.archive import decompressed, members


def refusal(read: Callable[[], object]) -> str | None:
    try:
        read()
    except ValueError as error:
        return str(error)
    return None


EVERYTHING: Callable[[str], bool] = lambda name: True  # noqa: E731


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.xz"])
def test_a_tar_and_its_folder_read_alike(tmp_path: Path, tar_of, ending: str) -> None:
    content = {"a/b.txt": b"one", "a/c/d.txt": b"two"}
    tar = tar_of(tmp_path / f"x.{ending}", content)
    for name, text in content.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(text)
    assert dict(members(tar, EVERYTHING)) == content
    assert dict(members(tmp_path / "folder", EVERYTHING)) == content
    assert dict(members(tar, lambda name: name.endswith("d.txt"))) == {"a/c/d.txt": b"two"}


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a\\..\\evil"])
def test_refuses_a_tar_with_a_member_outside(tmp_path: Path, tar_of, name: str) -> None:
    tar = tar_of(tmp_path / "x.tar", {"fine": b"1", name: b"2"})
    with pytest.raises(ValueError, match=r"x\.tar has the member .* that leaves its folder"):
        list(members(tar, lambda each: each == "fine"))


def test_refuses_a_tar_with_a_link(tmp_path: Path, tar_of) -> None:
    tar = tar_of(tmp_path / "x.tar.gz", {"fine": b"1"}, link="shadow")
    with pytest.raises(ValueError, match="has the link or device 'shadow'"):
        list(members(tar, EVERYTHING))


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tar.xz"])
def test_refuses_a_tar_cut_short(tmp_path: Path, tar_of, ending: str) -> None:
    tar = tar_of(tmp_path / f"x.{ending}", {"a": bytes(range(256)) * 40})
    raw = tar.read_bytes()
    tar.write_bytes(raw[: len(raw) // 3] if ending != "tar" else raw[:4000])
    with pytest.raises(ValueError, match=r"is cut short or damaged .* download it again"):
        list(members(tar, EVERYTHING))


def test_files_are_unpacked_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"text"))
    (tmp_path / "a").write_bytes(b"text")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("inner", b"text")
    for name in ("a.gz", "a.xz", "a.zip", "a"):
        assert decompressed(tmp_path / name) == b"text"


@pytest.mark.parametrize("name", ["a.gz", "a.xz", "a.zip"])
def test_refuses_a_packed_file_cut_short(tmp_path: Path, name: str) -> None:
    pack = {"a.gz": gzip.compress, "a.xz": lzma.compress, "a.zip": bytes}[name]
    (tmp_path / name).write_bytes(pack(b"some text " * 50)[:-9])
    with pytest.raises(ValueError, match=f"{name} is cut short or damaged"):
        decompressed(tmp_path / name)


def test_refuses_a_zip_of_many(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("one", b"1")
        packed.writestr("two", b"2")
    with pytest.raises(ValueError, match=r"a\.zip.*most 2 GB, got 2 files"):
        decompressed(tmp_path / "a.zip")


@given(st.binary(max_size=2000), st.sampled_from([".gz", ".xz", ".zip", ".tar", ".tar.gz"]))
@settings(deadline=None, max_examples=150)
def test_any_bytes_are_read_or_refused_by_name(tmp_path_factory, raw: bytes, ending: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz{ending}"
    path.write_bytes(raw)
    output = refusal(
        lambda: list(members(path, EVERYTHING)) if ".tar" in ending else decompressed(path)
    )
    assert output is None or path.name in output


def test_refuses_a_member_that_memory_could_not_hold(tmp_path: Path) -> None:
    info = tarfile.TarInfo("huge")
    info.size = 8 * 2**30
    (tmp_path / "x.tar").write_bytes(info.tobuf() + bytes(1024))
    with pytest.raises(ValueError, match=r"at most 2,147,483,648 bytes, got 8,589,934,592 for"):
        list(members(tmp_path / "x.tar", EVERYTHING))


def test_refuses_what_unpacks_to_more_than_memory_could_hold(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("depthpde.data.archive.TOO_LARGE", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(1001)))
    (tmp_path / "a.xz").write_bytes(lzma.compress(bytes(1001)))
    for name in ("a.gz", "a.xz"):
        with pytest.raises(ValueError, match="at most 1,000 bytes, got more"):
            decompressed(tmp_path / name)


def test_refuses_a_pipe_and_a_sparse_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="regular file, got a pipe"):
        decompressed(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(10 * 2**30)
    with pytest.raises(ValueError, match="10,737,418,240"):
        decompressed(tmp_path / "sparse")

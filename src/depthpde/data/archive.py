"""Read a folder or a tar of it alike, and trust no name in either."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from depthpde.files import read_plain

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")
TOO_LARGE = 1 << 31
"""Bytes that one file may have, packed or not."""


def is_archive(path: Path) -> bool:
    """Return whether a file's name is that of a tar."""
    return path.name.endswith(_TAR)


def members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the wanted files of a folder or a tar.

    Names are relative to the folder that the tar holds, with ``/`` between the parts. A folder is
    read in sorted order, a tar in its own. A tar with a member that leaves its folder (``../``,
    an absolute name) or points elsewhere (a link) is refused whole, read or not.
    """
    if path.is_dir():
        yield from _in_folder(path, wanted)
    else:
        yield from _in_tar(path, wanted)


def decompressed(path: Path) -> bytes:
    """Return the content of a file, unpacked by the ending ``.gz``, ``.xz`` or ``.zip``."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                return _bounded(path, packed.read(TOO_LARGE + 1))
        if path.suffix == ".xz":
            with lzma.open(path) as packed:
                return _bounded(path, packed.read(TOO_LARGE + 1))
        if path.suffix == ".zip":
            return _only_member(path)
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is cut short or damaged ({error}); download it again") from error
    return read_plain(path, TOO_LARGE)


def _bounded(path: Path, content: bytes) -> bytes:
    if len(content) > TOO_LARGE:
        raise ValueError(
            f"{path} must hold at most {TOO_LARGE:,} bytes, got more; download it again"
        )
    return content


def _in_folder(folder: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    for each in sorted(folder.rglob("*")):
        name = each.relative_to(folder).as_posix()
        if wanted(name) and each.is_file():
            yield name, read_plain(each, TOO_LARGE)


def _in_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(path, "r|*") as tar:
            for member in tar:
                _refuse_unsafe(path, member)
                if not member.isfile() or not wanted(_plain(member.name)):
                    continue
                if member.size > TOO_LARGE:
                    raise ValueError(
                        f"{path} must hold members of at most {TOO_LARGE:,} bytes, got "
                        f"{member.size:,} for {member.name!r}; download it again"
                    )
                content = tar.extractfile(member)
                assert content is not None, "a regular file has content"
                data = content.read()
                if len(data) != member.size:
                    raise EOFError(f"{member.name} ends early")
                yield _plain(member.name), data
    except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is cut short or damaged ({error}); download it again") from error


def _plain(name: str) -> str:
    return PurePosixPath(name).as_posix()


def _refuse_unsafe(path: Path, member: tarfile.TarInfo) -> None:
    parts = PurePosixPath(member.name)
    if parts.is_absolute() or ".." in parts.parts or "\\" in member.name:
        raise ValueError(
            f"{path} has the member {member.name!r} that leaves its folder; "
            "this is not the official archive: download it again"
        )
    if member.issym() or member.islnk() or member.isdev():
        raise ValueError(
            f"{path} has the link or device {member.name!r}, wanted files and folders only; "
            "this is not the official archive: download it again"
        )


def _only_member(path: Path) -> bytes:
    with zipfile.ZipFile(path) as packed:
        names = [info for info in packed.infolist() if not info.is_dir()]
        if len(names) != 1 or names[0].file_size > TOO_LARGE:
            raise ValueError(
                f"{path} must hold one file of at most 2 GB, got {len(names)} files; "
                "download it again"
            )
        return packed.read(names[0])

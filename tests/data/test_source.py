import hashlib
from pathlib import Path

import pytest

from depthpde.data.source import Source, content_digest, digest

FILE = Source(
    name="the thing",
    layout="thing.bin",
    url="https://example.org",
    patterns=("thing.bin",),
    md5={"thing.bin": hashlib.md5(b"right").hexdigest()},
)


@pytest.mark.parametrize("depth", ["", "a", "a/b"])
def test_a_file_is_found_up_to_two_folders_deep(tmp_path: Path, depth: str) -> None:
    (tmp_path / depth).mkdir(parents=True, exist_ok=True)
    (tmp_path / depth / "thing.bin").write_bytes(b"right")
    assert FILE.find(tmp_path, task="x") == tmp_path / depth / "thing.bin"


def test_the_first_pattern_wins(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).touch()
    assert FILE.seek(tmp_path, ["two", "one"]) == tmp_path / "two"
    assert FILE.seek(None) is None


def test_a_slash_at_the_end_asks_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep" / "thing").mkdir(parents=True)
    (tmp_path / "deep" / "thing" / "thing").touch()
    assert FILE.seek(tmp_path, ["thing/"]) == tmp_path / "deep" / "thing"
    assert FILE.seek(tmp_path, ["thing"]) == tmp_path / "deep" / "thing" / "thing"
    assert FILE.seek(tmp_path, ["thing.bin/"]) is None


def test_a_missing_file_says_where_to_get_it_and_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError,
        match=r"beneath .* there is no thing\.bin; get it from https://example\.org, then run: "
        "depthpde data prepare x --data FOLDER",
    ):
        FILE.find(tmp_path, task="x")
    with pytest.raises(FileNotFoundError, match="no data folder was given"):
        FILE.find(None, task="x")
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        FILE.find(tmp_path / "nowhere", task="x")


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thing.bin"
    path.write_bytes(b"right")
    FILE.check(path)
    path.write_bytes(b"wrong")
    with pytest.raises(ValueError, match=r"thing\.bin must have the published MD5 .*any-checksum"):
        FILE.check(path)


def test_a_content_digest_knows_where_one_piece_ends() -> None:
    assert content_digest([b"ab", b"c"]) == content_digest(iter([b"ab", b"c"]))
    assert content_digest([b"ab", b"c"]) != content_digest([b"a", b"bc"])


def test_a_digest_reads_the_whole_file(tmp_path: Path) -> None:
    content = bytes(3 << 20) + b"end"
    (tmp_path / "large").write_bytes(content)
    assert digest(tmp_path / "large") == hashlib.sha256(content).hexdigest()

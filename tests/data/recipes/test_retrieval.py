import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from depthpde.data.catalog import load, prepare
from depthpde.data.reader import read_manifest
from depthpde.data.recipes.retrieval import read_pairs


def release(folder: Path, rows: list[bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "eval", "test"):
        (folder / f"new_aan_pairs.{name}.tsv").write_bytes(b"".join(row + b"\n" for row in rows))
    return folder


ROWS = [
    b'1.0\tA\tB\tthe "first" paper\tthe second paper',
    b'0.0\tA\tC\tthe "first" paper\ta stray " quote',
    b'0.0\tC\tC\ta stray " quote\tanother text of C',
]


def test_each_document_is_stored_once_and_quotes_are_characters(tmp_path: Path) -> None:
    release(tmp_path / "tsv_data", ROWS)
    manifest = read_manifest(prepare("retrieval", data=tmp_path, out=tmp_path / "out", check=False))
    train = load("retrieval", "train", out=tmp_path / "out")
    assert len(train) == 3
    assert train.pairs.tolist() == [[0, 1], [0, 2], [2, 3]]
    assert train.labels.tolist() == [1, 0, 0]
    assert bytes((train.ids(2) - 1).astype(np.uint8).tolist()) == b'a stray " quote'
    assert manifest["facts"]["documents"] == 4
    assert manifest["facts"]["names_with_two_texts"] == 1


def test_refuses_a_release_that_is_not_whole(tmp_path: Path) -> None:
    release(tmp_path, ROWS)
    with pytest.raises(ValueError, match=r"train\.tsv must hold 147,086 examples, got 3; unpack"):
        prepare("retrieval", data=tmp_path, out=tmp_path / "out")


def test_documents_are_cut_at_the_length(tmp_path: Path) -> None:
    release(tmp_path, [b"1.0\tA\tB\t" + b"x" * 9000 + b"\t"])
    prepare("retrieval", data=tmp_path, out=tmp_path / "out", check=False)
    train = load("retrieval", "train", out=tmp_path / "out")
    assert np.diff(train.offsets).tolist() == [4000, 1]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b"1.0\tA\tB\tonly one text", "line 2 must have 5 columns parted by tabs .* got 4"),
        (b"1.0\tA\tB\tone\ttwo\tthree", "line 2 must have 5 columns parted by tabs .* got 6"),
        (b"2.0\tA\tB\tone\ttwo", "line 2 must have the label 0.0 or 1.0, got b'2.0'"),
    ],
)
def test_refuses_a_bad_line_by_number(tmp_path: Path, row: bytes, says: str) -> None:
    release(tmp_path, [ROWS[0], row])
    with pytest.raises(ValueError, match=says):
        list(read_pairs(tmp_path / "new_aan_pairs.train.tsv"))


def test_refuses_an_empty_file(tmp_path: Path) -> None:
    release(tmp_path, [])
    with pytest.raises(ValueError, match=r"train\.tsv is empty"):
        list(read_pairs(tmp_path / "new_aan_pairs.train.tsv"))


@given(st.lists(st.binary(max_size=40) | st.sampled_from(ROWS), max_size=8))
@settings(max_examples=150)
def test_any_lines_are_read_or_refused(tmp_path_factory, lines: list[bytes]) -> None:
    folder = release(tmp_path_factory.getbasetemp() / "fuzz-aan", lines)
    try:
        found = list(read_pairs(folder / "new_aan_pairs.train.tsv"))
    except ValueError:
        return
    assert all(pair.label in (0, 1) for pair in found)


def test_a_large_file_is_streamed_in_bounded_memory(tmp_path: Path) -> None:
    text = b"y" * 50_000
    rows = [b"1.0\tA%d\tB%d\t%s\t%s" % (n % 40, n % 30, text, text) for n in range(3_000)]
    release(tmp_path, rows[:1])
    (tmp_path / "new_aan_pairs.train.tsv").write_bytes(b"\n".join(rows) + b"\n")  # 300 MB
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from depthpde.data.catalog import prepare\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "prepare('retrieval', data=Path(sys.argv[1]), out=Path(sys.argv[2]), check=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40_000  # kilobytes

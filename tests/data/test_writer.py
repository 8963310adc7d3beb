import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from depthpde.data.reader import problems, read_split
from depthpde.data.writer import MANIFEST, Writer

HEADER = {"task": "x", "kind": "sequence", "shift": 1, "length": 9, "classes": 3, "vocabulary": 9}


def write(folder: Path) -> Path:
    with Writer(folder) as writer:
        writer.append("train", np.arange(5, dtype=np.uint8), np.array([2, 3]), np.array([0, 2]))
        writer.append("train", np.arange(4, dtype=np.uint8), np.array([4]), np.array([1]))
        writer.append("test", np.zeros(1, np.uint8), np.array([1]), np.array([0]))
        return writer.finish(HEADER)


def stop_halfway(folder: Path) -> None:
    with Writer(folder) as writer:
        writer.append("train", np.zeros(3, np.uint8), np.array([3]), None)
        raise RuntimeError("stop")


def test_what_is_written_in_pieces_is_read_as_one(tmp_path: Path) -> None:
    split = read_split(write(tmp_path / "x"), "train")
    assert len(split) == 3
    assert split.tokens.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert split.offsets.tolist() == [0, 2, 5, 9]
    assert split.labels.tolist() == [0, 2, 1]
    assert split.ids(1).tolist() == [3, 4, 5]
    assert problems(tmp_path / "x") == []


def test_the_manifest_tells_counts_shares_and_checksums(tmp_path: Path) -> None:
    manifest = json.loads((write(tmp_path / "x") / MANIFEST).read_text())
    assert manifest["splits"]["train"]["examples"] == 3
    assert manifest["splits"]["train"]["tokens"] == 9
    assert manifest["splits"]["train"]["label_shares"] == {
        "0": 0.333333, "1": 0.333333, "2": 0.333333
    }  # fmt: skip
    assert len(manifest["columns"]["train.tokens.u8"]["sha256"]) == 64


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one" / "x"), write(tmp_path / "two" / "x")
    assert {each.name: each.read_bytes() for each in one.iterdir()} == {
        each.name: each.read_bytes() for each in two.iterdir()
    }


def test_an_error_leaves_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "x")
    with pytest.raises(RuntimeError, match="stop"):
        stop_halfway(tmp_path / "x")
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    assert len(read_split(tmp_path / "x", "train")) == 3


def test_writing_again_replaces_the_whole_folder(tmp_path: Path) -> None:
    write(tmp_path / "x")
    (tmp_path / "x" / "stray").touch()
    write(tmp_path / "x")
    assert not (tmp_path / "x" / "stray").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["x"]


def test_a_killed_writer_leaves_only_a_hidden_folder_which_the_next_removes(tmp_path: Path) -> None:
    code = (
        "import os, sys, numpy as np; from pathlib import Path\n"
        "from depthpde.data.writer import Writer\n"
        "writer = Writer(Path(sys.argv[1])); writer.__enter__()\n"
        "writer.append('train', np.zeros(3, np.uint8), np.array([3]), None)\n"
        "os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], check=False)
    assert done.returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".x.partial-")
    running = left.with_name(f"{left.name.rpartition('-')[0]}-{os.getppid()}")
    elsewhere = left.with_name(f".x.partial-another_machine-{left.name.rpartition('-')[2]}")
    other = left.with_name(left.name.replace(".x.", ".y."))
    for each in (running, elsewhere, other):
        each.mkdir()
    write(tmp_path / "x")
    assert set(tmp_path.iterdir()) == {tmp_path / "x", running, elsewhere, other}


@pytest.mark.skipif(os.name != "posix", reason="limits of file sizes are a POSIX thing")
def test_a_full_disk_keeps_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "import resource, sys, numpy as np; from pathlib import Path\n"
        "from depthpde.data.writer import Writer\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "with Writer(Path(sys.argv[1])) as writer:\n"
        "    writer.append('train', np.zeros(1 << 20, np.uint8), np.array([1 << 20]), None)\n"
        "    writer.finish({})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "nothing was kept: free some space or choose another folder with --out" in done.stderr
    assert list(tmp_path.iterdir()) == []

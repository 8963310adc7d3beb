"""`depthpde verify`: one line a broken record, an exit code for scripts."""

from __future__ import annotations

import json

from depthpde.cli.main import main
from records.test_verification import make


def test_says_how_many_are_whole_and_exits_with_0(tmp_path, capsys):
    make(tmp_path, "a" * 16)
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(
        "1 whole, 0 without checksums, 0 unfinished, 0 broken"
    )


def test_names_what_is_broken_and_exits_with_1(tmp_path, capsys):
    (make(tmp_path, "a" * 16) / "predictions.u8").write_bytes(b"1")
    assert main(["verify", str(tmp_path)]) == 1
    assert f"broken: runs/{'a' * 16}: " in capsys.readouterr().out
    assert main(["verify", str(tmp_path), "--json"]) == 1
    assert list(json.loads(capsys.readouterr().out)["broken"]) == [f"runs/{'a' * 16}"]


def test_a_folder_without_runs_is_wrong_input(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err

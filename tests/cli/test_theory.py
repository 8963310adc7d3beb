import json
import subprocess
import sys
from pathlib import Path

import pytest

from depthpde.cli.main import main
from depthpde.theory.claim import Check, Claim, ClaimEvidence, Relation
from depthpde.theory.registry import CLAIMS


def depthpde(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "depthpde.cli.main", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=cwd
    )


def a_claim(measured: float, refuting: float) -> Claim:
    def at_most_one(value: float) -> Check:
        return Check(quantity="x", predicted=1.0, measured=value, comparison=Relation.AT_MOST)

    return Claim(
        name="small",
        statement="x is small",
        equation="x ≤ 1",
        source="here",
        measure=lambda: ClaimEvidence(checks=(at_most_one(measured),)),
        counterexample="a large x",
        refute=lambda: at_most_one(refuting),
    )


def test_a_subset_prints_the_table_and_writes_record_and_page(tmp_path: Path) -> None:
    done = depthpde("theory", "--only", "spectrum", "--only", "cfl", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in ("claim", "predicted", "measured", "verdict"))
    assert done.stdout.count("✓ holds") == 2
    assert "[1/2] spectrum: holds" in done.stderr
    record = json.loads((tmp_path / "here" / "theory.json").read_text())
    assert [each["name"] for each in record["findings"]] == ["spectrum", "cfl"]
    assert (tmp_path / "here" / "theory.html").read_text().startswith("<!DOCTYPE html>")
    assert len(list((tmp_path / "here").iterdir())) == 2


def test_json_prints_the_record_alone(tmp_path: Path) -> None:
    done = depthpde("theory", "--only", "collapse", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] == "holds"
    written = (tmp_path / "out" / "theory" / "theory.json").read_text()
    assert written == done.stdout


def test_an_unknown_claim_names_the_nearest_and_exits_2(tmp_path: Path) -> None:
    done = depthpde("theory", "--only", "heat-kernal", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'heat-kernel'?" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_computed(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["theory", "--only", "spectrum", "--out", str(tmp_path / out)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("depthpde theory: `--out` must be a folder that can be written, got ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("claim", "printed"),
    [
        (a_claim(2.0, 2.0), "small fails: x: predicted ≤ 1, measured 2"),
        (a_claim(0.5, 0.5), "small is blind: a large x passes its check too"),
    ],
    ids=["fails", "blind"],
)
def test_a_verdict_that_does_not_hold_exits_1_and_says_why(
    claim: Claim,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(CLAIMS, claim.name, claim)
    assert main(["theory", "--only", "small", "--out", str(tmp_path)]) == 1
    assert printed in capsys.readouterr().out
    assert (tmp_path / "theory.json").exists()


def test_help_shows_examples_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = depthpde("theory", "--help", cwd=tmp_path)
    assert done.stdout.count("depthpde theory") >= 3
    code = "import sys; from depthpde.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    ).stdout.split()
    assert "depthpde.cli.theory" in loaded
    assert not {"torch", "numpy", "rich", "jinja2", "plotly", "numba"} & set(loaded)

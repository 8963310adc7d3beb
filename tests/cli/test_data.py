import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from depthpde.cli.data import ACTIONS
from depthpde.cli.main import main
from depthpde.data.tasks import TASKS

ROOT = Path(__file__).parents[2]


def shrink(monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
    """Let a task have fewer examples: drawing them is what takes long."""
    task = TASKS[name]
    splits = {split: max(count // times, 8) for split, count in task.splits.items()}
    monkeypatch.setitem(TASKS, name, dataclasses.replace(task, splits=splits))


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, "pathfinder-mini", 100)
        names = ["listops-mini", "pathfinder-mini"]
        assert main(["data", "prepare", *names, "--out", str(folder)]) == 0
        yield folder


def output(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_the_list_tells_sizes_and_what_is_missing(tmp_path: Path, out: Path, capsys) -> None:
    assert main(["data", "list", "--data", str(tmp_path), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    for name in TASKS:
        assert f"{name} " in text
    head, *lines = text.partition("\n\n")[0].splitlines()
    titles = [task.title for task in TASKS.values()]
    starts = [line.index(title) for line, title in zip(lines, titles, strict=True)]
    assert starts == [head.index("what")] * len(TASKS)
    assert "missing: CIFAR-10 — get it from https://www.cs.toronto.edu" in text
    assert main(["data", "list", "--data", str(tmp_path), "--out", str(out), "--json"]) == 0
    status = {row["task"]: row["status"] for row in output(capsys)["tasks"]}
    assert status["listops-mini"] == "prepared"
    assert status["listops"] == "ready"
    assert status["image"] == "missing"


def test_what_is_prepared_is_not_prepared_again_unless_forced_or_other(out: Path, capsys) -> None:
    base = ["data", "prepare", "listops-mini", "--out", str(out)]
    before = (out / "listops-mini" / "manifest.json").stat().st_mtime_ns
    assert main(base) == 0
    assert "prepared already" in capsys.readouterr().err
    assert (out / "listops-mini" / "manifest.json").stat().st_mtime_ns == before
    assert main([*base, "--force", "--json"]) == 0
    assert output(capsys)["prepared"][0]["task"] == "listops-mini"
    assert (out / "listops-mini" / "manifest.json").stat().st_mtime_ns > before


def test_another_seed_and_a_broken_manifest_are_prepared_anew(out: Path, capsys) -> None:
    base = ["data", "prepare", "pathfinder-mini", "--out", str(out)]
    assert main([*base, "--seed", "1"]) == 0
    assert "it is of seed 0, not 1; it is prepared again" in capsys.readouterr().err
    assert json.loads((out / "pathfinder-mini" / "manifest.json").read_text())["seed"] == 1
    (out / "pathfinder-mini" / "manifest.json").write_text("{}")
    capsys.readouterr()
    assert main(base) == 0
    assert "its manifest cannot be read; it is prepared again" in capsys.readouterr().err
    assert json.loads((out / "pathfinder-mini" / "manifest.json").read_text())["seed"] == 0


def test_damaged_files_are_told_and_prepared_anew(out: Path, tmp_path: Path, capsys) -> None:
    folder, where = tmp_path / "listops-mini", ["--out", str(tmp_path)]
    shutil.copytree(out / "listops-mini", folder)
    (folder / "train.tokens.u8").write_bytes(b"")
    advice = f"run: depthpde data prepare listops-mini --out {tmp_path}\n"
    assert main(["data", "show", "listops-mini", *where]) == 2
    assert capsys.readouterr().err.endswith(f" bytes, got 0; {advice}")
    assert main(["data", "list", *where]) == 0
    assert f"damaged: listops-mini — {advice}" in capsys.readouterr().out
    assert main(["data", "list", "--json", *where]) == 0
    status = {row["task"]: row["status"] for row in output(capsys)["tasks"]}
    assert status["listops-mini"] == "damaged"
    assert main(["data", "prepare", "listops-mini", *where]) == 0
    assert "bytes, got 0; it is prepared again" in capsys.readouterr().err
    assert main(["data", "verify", *where]) == 0
    assert main(["data", "prepare", "listops-mini", *where]) == 0
    assert "prepared already" in capsys.readouterr().err


def test_verify_is_0_when_whole_and_1_when_changed(out: Path, tmp_path: Path, capsys) -> None:
    assert main(["data", "verify", "--out", str(out)]) == 0
    assert "listops-mini: whole" in capsys.readouterr().out
    folder = tmp_path / "listops-mini"
    shutil.copytree(out / "listops-mini", folder)
    (folder / "test.tokens.u8").write_bytes(b"short")
    assert main(["data", "verify", "listops-mini", "--out", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "has changed since it was prepared" in printed
    assert printed.endswith(f"run: depthpde data prepare listops-mini --force --out {tmp_path}\n")
    assert main(["data", "verify", "--out", str(tmp_path), "--json"]) == 1
    assert len(output(capsys)["problems"]["listops-mini"]) == 1


def test_show_prints_a_tree_and_draws_a_picture(out: Path, tmp_path: Path, capsys) -> None:
    assert main(["data", "show", "listops-mini", "--out", str(out), "--count", "2"]) == 0
    text = capsys.readouterr().out
    assert "listops-mini · train 1 · label" in text
    assert " = " in text
    base = ["data", "show", "pathfinder-mini", "--out", str(out), "--png", str(tmp_path / "png")]
    assert main(base) == 0
    assert "@" in capsys.readouterr().out
    assert main([*base, "--split", "test", "--json"]) == 0
    assert Path(output(capsys)["examples"][0]["png"]).read_bytes().startswith(b"\x89PNG")


def test_a_task_without_its_files_is_2_alone_and_1_among_others(tmp_path: Path, capsys) -> None:
    base = ["data", "prepare", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*base, "text"]) == 2
    assert "text needs the IMDb reviews" in capsys.readouterr().err
    assert main([*base, "text", "image"]) == 1
    assert "image needs CIFAR-10" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["prepare"], "name a task, or pass --all-mini or --all"),
        (["prepare", "listop"], "did you mean 'listops'?"),
        (["prepare", "listops", "--protocol", "lra-2019"], "did you mean 'lra-2020'?"),
        (["show", "texts"], "did you mean 'text'?"),
        (["show", "text"], "is not prepared"),
        (["show", "text", "--count", "0"], "`count` must be at least 1"),
        (["verify"], "holds no prepared task"),
        (["verify", "listop"], "did you mean 'listops'?"),
    ],
)
def test_wrong_input_is_2_and_says_what_to_do(tmp_path: Path, capsys, arguments, says) -> None:
    assert main(["data", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert says in capsys.readouterr().err


def test_an_older_recipe_is_prepared_anew(out: Path, capsys, monkeypatch) -> None:
    newer = dataclasses.replace(TASKS["listops-mini"], generator=99)
    monkeypatch.setitem(TASKS, "listops-mini", newer)
    assert main(["data", "list", "--out", str(out)]) == 0
    assert "outdated: listops-mini — run: depthpde data prepare" in capsys.readouterr().out
    assert main(["data", "prepare", "listops-mini", "--out", str(out)]) == 0
    assert "of another version of its recipe; it is prepared again" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(["data", "prepare", "listops-mini", "--out", str(out), "--force"]) == 0


def test_all_takes_what_is_there(tmp_path: Path, capsys, monkeypatch) -> None:
    only = {name: TASKS[name] for name in ("listops-mini", "text")}
    monkeypatch.setattr("depthpde.data.tasks.TASKS", only)
    monkeypatch.delenv("DEPTHPDE_DATA", raising=False)
    assert main(["data", "prepare", "--all", "--out", str(tmp_path), "--json"]) == 0
    assert [each["task"] for each in output(capsys)["prepared"]] == ["listops-mini"]


@pytest.mark.drill
def test_every_mini_task_is_prepared_from_the_official_files(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    data = Path(os.environ.get("DEPTHPDE_DATA") or ROOT / ".." / "shared" / "data").resolve()
    if not data.is_dir():
        pytest.skip("no official files: set DEPTHPDE_DATA to the folder that holds them")
    pytest.importorskip("PIL")
    for name in ("retrieval-mini", "pathfinder-mini"):
        shrink(monkeypatch, name, 16)
    assert main(["data", "prepare", "--all-mini", "--data", str(data), "--out", str(tmp_path)]) == 0
    assert main(["data", "verify", "--out", str(tmp_path), "--json"]) == 0
    capsys.readouterr()
    for task in TASKS.values():
        if task.mini:
            manifest = json.loads((tmp_path / task.name / "manifest.json").read_text())
            amount = "tokens" if task.kind == "language" else "examples"
            sizes = {name: manifest["splits"][name][amount] for name in task.splits}
            assert sizes == dict(task.splits), task.name


def test_help_shows_examples_without_torch() -> None:
    code = (
        "import sys; from depthpde.cli.main import main\n"
        "try: main(['data', '--help'])\n"
        "except SystemExit: print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("depthpde data ") >= 6
    assert done.stdout.strip().endswith("False")


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_explains_itself_and_its_words_with_two_examples(action: str, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["data", action, "--help"])
    text = capsys.readouterr().out
    assert text.count(f"  depthpde data {action}") >= 2
    assert f"\n\n{ACTIONS[action]}\n\n" in text
    options = text.partition("\noptions:\n")[2].partition("\nexamples:\n")[0]
    arguments = text.partition("positional arguments:\n")[2].partition("\n\n")[0]
    for line in (*arguments.splitlines(), *options.splitlines()):
        if line.startswith("  ") and not line.startswith("   "):
            assert "  " in line.strip(), f"{line} has no words"


def test_the_documentation_tells_the_trivial_lines_that_the_commands_print(out: Path) -> None:
    manifest = json.loads((out / "listops-mini" / "manifest.json").read_text())
    lines = sorted(manifest["facts"]["baselines"].values())
    printed = " / ".join(f"{each:.1f}" for each in lines)
    assert f"depth 4 | {printed} |" in (ROOT / "docs" / "data.md").read_text()

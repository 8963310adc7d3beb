"""Every shell command of README and docs is one that the command line takes as it is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from depthpde.cli.main import parser
from recipes import PAGES, ROOT

KNOWN = {
    "cd", "eval", "export", "git", "jupytext", "mlflow", "pip", "ray", "rsync", "sbatch", "source",
    "tensorboard", "torchrun", "trackio", "ssh", "uvx", "wandb",
}  # fmt: skip
"""Programs that are not ours."""
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def commands(page: Path) -> Iterator[str]:
    """Give the lines of a page's shell blocks, and the commands that stand alone, indented."""
    text = page.read_text(encoding="utf-8")
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.M):
        lines = block.replace("\\\n", " ").splitlines()
        if kind in ("sh", "bash"):
            yield from lines
        elif kind == "":  # what a terminal shows: commands and output
            yield from (each for each in lines if re.match(r"(depthpde|torchrun) ", each))
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from re.findall(r"^    ((?:depthpde|make|python) .*)$", outside, flags=re.M)
    yield from (
        each
        for each in re.findall(r"`(depthpde \w+ [^`\n]+)`", outside)  # more than a verb's name
        if not re.search(r"[…|\[\]]|\.\.\.", each)  # a pattern, not a command
    )


ALL = [(page, line) for page in PAGES for line in commands(page)]


def test_pages_have_commands():
    assert len(ALL) > 80
    assert {page.name for page, _ in ALL} >= {"README.md", "sweeps.md", "training.md", "tools.md"}


@pytest.mark.parametrize("page", sorted({page for page, _ in ALL}), ids=lambda p: p.name)
def test_every_command_is_taken(page, capsys):
    wrong = [line for each, line in ALL if each == page and not is_taken(line, capsys)]
    assert wrong == []


def is_taken(line: str, capsys: pytest.CaptureFixture[str]) -> bool:
    words = shlex.split(line, comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):  # a variable for this command alone
        words = words[1:]
    if not words:
        return True
    program, *rest = words
    program = program.removeprefix("$ ").removeprefix(".venv/bin/")
    for stop in (">", "|", "&", "2>&1", "&&"):
        rest = rest[: rest.index(stop)] if stop in rest else rest
    if program == "depthpde":
        return _is_parsed(rest, capsys)
    if program == "make":
        return all(f"\n{name}:" in MAKEFILE for name in rest if "=" not in name)
    if program in ("python", "python3"):
        return rest[0].startswith("-") or (ROOT / rest[0]).is_file()
    if program == "torchrun" and "depthpde.cli.main" in rest:
        return _is_parsed(rest[rest.index("depthpde.cli.main") + 1 :], capsys)
    return program in KNOWN


def _is_parsed(words: list[str], capsys: pytest.CaptureFixture[str]) -> bool:
    try:
        parser().parse_args(words)
    except SystemExit as end:
        capsys.readouterr()
        return end.code == 0  # --help and --version end too
    return True


def test_a_wrong_command_would_be_found(capsys):
    assert not is_taken("depthpde dcotor --hf x", capsys)
    assert not is_taken("depthpde train listops-mini --positon x", capsys)
    assert not is_taken("make nothing", capsys)
    assert not is_taken("python benchmarks/nothing.py", capsys)
    assert not is_taken("frobnicate", capsys)
    assert is_taken("NO_COLOR=1 depthpde theory   # all of it", capsys)

"""The command as a whole: help, version, wrong words, a closed pipe."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from depthpde.cli.main import VERBS, main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "depthpde", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_help_names_every_verb_and_version_its_number():
    text = run("--help").stdout
    assert all(verb in text for verb in VERBS)
    assert run("--version").stdout.startswith("depthpde ")


def test_help_does_not_wait_for_torch():
    start = time.perf_counter()
    run("--help")
    assert time.perf_counter() - start < 5  # torch alone takes longer on a busy machine


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_two_examples(verb):
    text = run(verb, "--help").stdout
    assert text.count(f"depthpde {verb}") >= 3
    assert "examples" in text.lower()


def test_a_wrong_verb_exits_with_2():
    done = run("theorem")
    assert done.returncode == 2
    assert "did you mean 'theory'?" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_verb_the_help_is_shown(capsys):
    assert main([]) == 2
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert all(verb in shown for verb in VERBS)


def test_wrong_input_is_one_line_and_debug_shows_where(capsys):
    assert main(["theory", "--only", "nothing"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("depthpde theory: `--only` must be one of")
    assert error.count("\n") == 1
    with pytest.raises(ValueError, match="`--only` must be one of"):
        main(["theory", "--only", "nothing", "--debug"])


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m depthpde.cli.main data list --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_an_interrupt_exits_with_130(monkeypatch, capsys):
    from depthpde.cli import theory

    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(theory, "run", interrupted)
    assert main(["theory"]) == 130
    assert "interrupted" in capsys.readouterr().err

"""The command as a whole: help, version, wrong words, a closed pipe."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from depthpde.cli.main import VERBS, Parser, main, parser


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


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (
            "train listops-mini --postion after_embedding",
            "train: unknown option --postion; did you mean --position? see depthpde train --help",
        ),
        (
            "train --postion=after_embedding",
            "train: unknown option --postion; did you mean --position? see depthpde train --help",
        ),
        (
            "train text-mini -seed 3",
            "train: unknown option -seed; did you mean --seed? see depthpde train --help",
        ),
        ("train --zzz", "train: unknown option --zzz; see depthpde train --help"),
        ("train text-mini --lr 1", "train: unknown option --lr; see depthpde train --help"),
        (
            "train listops-mini --updates abc",
            "train: argument --updates: invalid int value: 'abc'; see depthpde train --help",
        ),
        (
            "doctor --checkpont runs/0123",
            "doctor: unknown option --checkpont; did you mean --checkpoint? "
            "see depthpde doctor --help",
        ),
        (
            "data list --jsn",
            "data list: unknown option --jsn; did you mean --json? see depthpde data list --help",
        ),
        ("train one two", "train: unexpected word 'two'; see depthpde train --help"),
        (
            "report",
            "report: the following arguments are required: RESULTS; see depthpde report --help",
        ),
    ],
)
def test_wrong_words_are_told_in_one_line_by_the_verb_they_were_said_to(words, printed, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"depthpde {printed}\n"


def test_a_wrong_option_before_any_verb_names_the_nearest(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--verson"])
    assert ended.value.code == 2
    printed = "depthpde: unknown option --verson; did you mean --version? see depthpde --help\n"
    assert capsys.readouterr().err == printed


def test_every_verb_and_action_tells_in_one_line():
    def below(one):
        inner = [each for each in one._actions if each.nargs == "A..."]
        return [one, *(each for a in inner for sub in a.choices.values() for each in below(sub))]

    found = below(parser())
    assert len(found) > len(VERBS) + 4
    assert all(type(each) is Parser for each in found)


def test_an_option_may_be_shortened_and_its_value_may_look_like_one():
    output = parser().parse_args(["train", "--pos", "after_ffn", "--set", "--a b", "--", "--text"])
    assert (output.position, output.changes, output.task) == (["after_ffn"], ["--a b"], "--text")


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (
            FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), "there"),
            "there: cannot be read or written (File exists); name another, or let --debug show",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            "a file: cannot be read or written (No space left on device); name another, or let",
        ),
        (OSError(errno.EIO, "a word of ours; do that", b"here"), "here: a word of ours; do that\n"),
        (OSError("`--out` must be ours"), "`--out` must be ours\n"),
    ],
)
def test_an_error_of_the_system_is_told_with_its_file_and_without_its_number(
    error, printed, monkeypatch, capsys
):
    from depthpde.cli import env

    def fails(arguments):
        raise error

    monkeypatch.setattr(env, "run", fails)
    assert main(["env"]) == 2
    assert capsys.readouterr().err.startswith(f"depthpde env: {printed}")


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


def hostile(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a shell, its words after ``depthpde``."""
    line = f"{sys.executable} -m depthpde {command}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=os.environ | environment
    )


def test_a_closed_output_is_no_error_and_a_full_one_is_told_in_one_line():
    closed = hostile("data list >&-")
    assert (closed.returncode, closed.stderr) == (0, "")
    assert hostile("data list 2>&-").returncode == 0
    full = hostile("data list >/dev/full")
    assert (full.returncode, full.stderr.count("\n")) == (2, 1)
    assert "No space left on device" in full.stderr


def test_a_terminal_that_knows_ascii_only_gets_every_table():
    done = hostile("data list", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def test_a_terminated_command_exits_with_143_and_too_little_memory_is_told(monkeypatch, capsys):
    from depthpde.cli import theory
    from depthpde.runs.failure import TerminatedError

    for error, code, word in (
        (TerminatedError(), 143, "interrupted"),
        (MemoryError(), 3, "memory"),
    ):

        def fails(arguments, error=error):
            raise error

        monkeypatch.setattr(theory, "run", fails)
        assert main(["theory"]) == code
        printed = capsys.readouterr().err
        assert word in printed
        assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("train listops-mini --config /dev/full", "must be a regular file, got a device"),
        ("train listops-mini --config deep.yaml", "deep.yaml must be YAML, but"),
        ("train listops-mini --config deep.json", "deep.json must be JSON, but"),
        (f"train listops-mini --set model.dim={'[' * 9000}", "must be plain JSON, but"),
        (f"train listops-mini --set model.dim={'1' * 9000}", "must be plain JSON, but"),
        ("sweep deep-grid.yaml", "deep-grid.yaml: it must be YAML, but"),
        ("sweep deep-grid.json", "deep-grid.json: it must be JSON, but"),
        ("sweep placement --seeds 1000000000000", "`--seeds` must be at most 1,000,000,000"),
        (
            "doctor --python .",
            "`--python` must name a function as module:function or file.py:function",
        ),
        ("doctor --python ..:x", "`--python` must name a function as module:function"),
        ("doctor --python json:load_", "json has no function 'load_'; did you mean 'load'?"),
        ("doctor --checkpoint deep", "config.json must be JSON"),
    ],
)
def test_hostile_input_is_one_sentence_and_exit_code_2(
    words, printed, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("deep.yaml", "deep.json", "deep-grid.yaml", "deep-grid.json"):
        (tmp_path / name).write_text("[" * 100_000)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "config.json").write_text("[" * 100_000)
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert printed in error
    assert error.count("\n") == 1

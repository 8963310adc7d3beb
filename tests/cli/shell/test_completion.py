"""TAB knows every verb and option: bash itself is asked."""

import shutil
import subprocess

import pytest

from depthpde.cli.main import VERBS, main, parser
from depthpde.cli.shell.completion import words_of


def complete(script: str, *words: str) -> list[str]:
    """Ask bash what it would offer for the last word."""
    asked = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; _depthpde; echo ${{COMPREPLY[@]}}"
    output = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    return output.stdout.split()


def test_every_verb_and_its_own_options_are_offered(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert set(complete(script, "depthpde", "")) == set(VERBS)
    assert complete(script, "depthpde", "dem") == ["demo"]
    assert complete(script, "depthpde", "demo", "--qui") == ["--quick"]
    assert set(complete(script, "depthpde", "data", "p")) == {"prepare"}
    assert complete(script, "depthpde", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_words(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for verb, words in words_of(parser()).items():
        assert verb in script
        assert all(word.removeprefix("--") in script for word in words)
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_an_unknown_shell_is_wrong_input(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2

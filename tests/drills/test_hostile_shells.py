"""The command line in shells that nobody would choose: one sentence, a right code, no traceback.

The slice of every test run is in tests/cli/test_main.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import pytest

LIGHT = {
    "--help": 0, "nosuch": 2, "data list": 0, "data list --json": 0, "data show nosuch": 2,
    "data prepare nosuch": 2, "data verify --out nowhere": 2, "verify nowhere": 2,
    "verify empty": 2, "verify pipe": 2, "report nowhere": 2, "report pipe": 2,
    "report nowhere --out /proc/nowhere": 2, "dash nowhere": 2, "dash pipe": 2,
    "dash empty --port 99999": 2, "sweep status nowhere": 2, "sweep --help": 0,
    "reproduce nosuch": 2, "doctor": 2, "completion bash": 0, "bench --rounds 99999999999999": 2,
}  # fmt: skip
"""Words after ``depthpde`` that need no torch, and the code they end with in a kind shell."""
HEAVY = {
    "train": 2, "train nosuch": 2, "train listops-mini --config deep.yaml": 2,
    "train listops-mini --config /dev/full": 2, "train listops-mini --config pipe": 2,
    "sweep deep.json": 2, "sweep placement --seeds 1000000000000": 2,
    "sweep placement --seeds -1": 2, "demo --updates 0": 2, "doctor --python .": 2,
    "protocol show nosuch": 2,
}  # fmt: skip
"""Those that import torch first, seconds each: in four shells in turn, together in all."""
COMMANDS = LIGHT | HEAVY
NONE = "/nonexistent"
SHELLS: dict[str, tuple[str, dict[str, str]]] = {
    "kind": ("", {}),
    "C locale": ("", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
    "closed stdout": (" >&-", {}),
    "closed stderr": (" 2>&-", {}),
    "both closed": (" >&- 2>&-", {}),
    "closed stdin": (" <&-", {}),
    "full stdout": (" >/dev/full", {}),
    "full stderr": (" 2>/dev/full", {}),
    "reader gone": (" | head -c 1", {}),
    "no home": ("", {"HOME": NONE, "XDG_CACHE_HOME": f"{NONE}/cache", "TMPDIR": NONE}),
    "one column": ("", {"COLUMNS": "1", "TERM": "dumb", "LINES": "1"}),
    "few files": (" #few", {}),
}
CODES = {0, 1, 2, 3, 141}
"""What a command may end with; 141 is a reader that left."""


def all_calls():
    """Return every call: the light ones in every shell, the heavy ones in every third."""
    shells = list(SHELLS)
    turns = [(words, shells[k % 3 :: 3]) for k, words in enumerate(HEAVY)]
    return [*product(LIGHT, SHELLS), *((words, each) for words, some in turns for each in some)]


def ask(words, shell, folder):
    """Run a command in a shell; say what was wrong, empty where nothing was."""
    tail, settings = SHELLS[shell]
    limit = "ulimit -n 64; " if "#few" in tail else ""
    line = f"set -o pipefail; {limit}{sys.executable} -m depthpde {words}{tail}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=os.environ | settings, capture_output=True,
        timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if "Traceback" in out + err or "Error:" in err:
        return f"{err[-300:]}"
    if done.returncode not in CODES:
        return f"code {done.returncode}: {err[-200:]}"
    if shell in ("kind", "C locale", "one column", "no home", "few files", "closed stdin"):
        wanted = COMMANDS[words]
        if done.returncode != wanted:
            return f"code {done.returncode}, wanted {wanted}: {err[-200:]}"
        if wanted == 2 and (not err.strip() or ("usage:" not in err and err.count("\n") > 2)):
            return f"{err.count(chr(10))} lines: {err[-300:]}"
    if shell == "C locale" and not (out + err).isascii():
        return "more than ASCII"
    return ""


@pytest.mark.drill
@pytest.mark.parametrize("part", range(4))
def test_calls_in_hostile_shells_end_in_a_sentence_and_a_code(part, tmp_path, tally):
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    (tmp_path / "deep.json").write_text('{"a":' * 100_000)
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    calls = all_calls()
    assert len(calls) >= 300
    assert {shell for words, shell in calls if words in HEAVY} == set(SHELLS)
    calls = calls[part::4]
    output = [ask(*each, tmp_path) for each in calls]
    wrong = {call: each for call, each in zip(calls, output, strict=True) if each}
    assert wrong == {}
    tally("Command lines in hostile shells", len(calls), "one sentence, a right code, no traceback")

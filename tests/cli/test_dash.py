from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from depthpde.cli.main import main
from depthpde.web.security import own_names


@contextmanager
def dash(*options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "depthpde.cli.main", "dash", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.stderr.read() if process.stderr else ""
    return line


def test_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    with dash(str(tmp_path), "--json") as process:
        output = json.loads(first_line(process))
        assert output["address"] == f"http://localhost:{output['port']}/"
        assert output["token"] is None
        with urllib.request.urlopen(output["address"], timeout=60) as answer:
            assert "No runs here yet" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "closed\n"


def test_another_address_comes_with_a_token(tmp_path: Path) -> None:
    with dash(str(tmp_path), "--host", "0.0.0.0", "--json") as process:
        output = json.loads(first_line(process))
        assert len(output["token"]) >= 40
        assert output["address"].endswith(f"/?token={output['token']}")
        assert own_names()[0] in output["address"]  # by which others reach it
        bare = f"http://127.0.0.1:{output['port']}/"
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(bare, timeout=60)
        refused.value.close()
        shown = {"authorization": f"Bearer {output['token']}"}
        request = urllib.request.Request(bare, headers=shown)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200


def test_any_token_survives_its_address(tmp_path: Path) -> None:
    token = "correct+horse&battery#100% staple"
    with dash(str(tmp_path), "--token", token, "--json") as process:
        address = json.loads(first_line(process))["address"]
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=60) as answer:
            assert answer.status == 200


def test_a_folder_that_is_not_there_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dash", str(tmp_path / "nothing")]) == 2
    assert "`RESULTS` must be a folder" in capsys.readouterr().err
    assert main(["dash", str(tmp_path / "nothing")]) == 2
    assert "depthpde demo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "99999"], "`--port` must lie in 1 … 65535, got 99999"),
        (["--token", "short"], "`--token` must have at least 16 letters"),
        (["--host", "203.0.113.7"], "`--host` 203.0.113.7 cannot be bound"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main(["dash", str(tmp_path), *options]) == 2
    output = capsys.readouterr().err
    assert words in output
    assert output.count("\n") == 1


def test_help_needs_neither_torch_nor_a_server() -> None:
    code = (
        "import sys; from depthpde.cli.main import parser; parser();"
        "print(sorted({'torch', 'starlette', 'uvicorn'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert found.stdout == "[]\n"


def test_a_missing_server_names_the_extra_that_brings_it(tmp_path: Path) -> None:
    # a process of its own: our server may be imported here, and importing it twice makes two of it
    code = (
        "import sys; sys.modules['uvicorn'] = None; from depthpde.cli.main import main;"
        f"sys.exit(main(['dash', {str(tmp_path)!r}]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 2
    assert "needs uvicorn; install it with: pip install 'depthpde[web]'" in found.stderr

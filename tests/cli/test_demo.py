"""``depthpde demo``: three models, a paired table, a page; a second one computes nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest

from depthpde.cli.main import main
from depthpde.demo import look as look_module
from depthpde.records.record import read_grids, read_records


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return ["demo", "--updates", "2", "--seeds", "1", "--workers", "1", "--out", str(out)]


@pytest.fixture(autouse=True)
def _without_minilm(monkeypatch):
    """The pretrained model has its own tests."""
    monkeypatch.setattr(look_module, "find_files", lambda: None)


def test_the_demo_compares_three_models_and_writes_the_page(words, capsys):
    assert main(words) == 0
    printed = capsys.readouterr()
    for name in ("plain", "upwind diffusion", "free convolution"):
        assert any(line.startswith(name) for line in printed.out.splitlines())
    for step in ("1 of 3", "2 of 3 · 3 small GPTs, 2 updates each, 1 at a time", "3 of 3"):
        assert step in printed.err
    page = Path(printed.out.split("open ")[1].strip())
    assert "What to do next" in page.read_text()
    assert len(read_records(Path(words[-1])).found) == 3


def test_a_second_demo_computes_nothing_and_says_the_same_to_scripts(words, capsys):
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    output = json.loads(printed.out)
    assert set(output["variants"]) == {"plain", "upwind diffusion", "free convolution"}
    assert ": done" not in printed.err
    out = Path(words[-1])
    assert {each.status["attempts"] for each in read_records(out).found.values()} == {1}
    assert {cell.seed for cell in read_grids(out).by_name["demo"].cells} == {1}


def test_ctrl_c_before_the_first_model_is_whole_is_an_interruption(tmp_path, capsys):
    """It was refused: without a finished run of the first model nothing was compared."""
    usual = signal.getsignal(signal.SIGINT)

    def interrupt():
        while signal.getsignal(signal.SIGINT) is usual:  # until a sweep listens
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=interrupt, daemon=True).start()
    words = ["--updates", "5000", "--seeds", "1", "--workers", "1", "--out", str(tmp_path)]
    assert main(["demo", *words]) == 130
    printed = capsys.readouterr()
    assert "interrupted; saved: the same command goes on" in printed.err
    assert "must have a finished run" not in printed.err


@pytest.mark.parametrize("option", ["--updates", "--workers", "--seeds"])
def test_nothing_at_all_is_refused_and_not_taken_for_the_default(option, tmp_path, capsys):
    assert main(["demo", option, "0", "--out", str(tmp_path)]) == 2
    assert f"`{option}` must be at least 1, got 0" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

"""Kernels after a fork, from two processes at once, without a folder to write, and their errors."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from numba.core import caching

from depthpde import diffuse
from depthpde.operators.diffusion.kernels import threads

SOURCE = Path(threads.__file__).parents[4]
FIRST_USE = (
    "import torch, depthpde as dp; torch.set_num_threads(2);"
    "print(float(dp.diffuse(torch.ones(1, 600, 64), 0.2).sum()))"
)


def run(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SOURCE)} | environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
def test_a_fork_after_use_computes_with_threads_of_its_own():
    u = torch.randn(1, 2000, 64)
    assert u.numel() > threads.SMALL
    wanted = diffuse(u, 0.2)

    def count(first: int, last: int) -> None:
        done.append((first, last))

    count.overloads = True  # as a compiled kernel has
    done: list[tuple[int, int]] = []
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for threads it does not have would wait for ever
        threads.launch(count, 2, threads.SMALL)
        torch.set_num_threads(1)  # as in a DataLoader's worker: torch's own threads are gone too
        same = torch.equal(diffuse(u, 0.2), wanted)
        os._exit(0 if same and sorted(done) == [(0, 1), (1, 2)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_two_processes_compile_at_once_and_say_so_in_one_line_each(tmp_path):
    both = [run(FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    for each in both:
        out, output = each.communicate(timeout=300)
        assert each.returncode == 0, output
        assert float(out) == 600 * 64
        assert output.count("\n") == 1
        assert "compiling" in output
        assert 0.0 < float(re.search(r"took ([\d.]+) s$", output.strip())[1]) < 300
    again = run(FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path))
    out, output = again.communicate(timeout=300)
    assert (float(out), output) == (600 * 64, "")


def test_a_kernel_is_compiled_where_no_folder_can_be_written(monkeypatch, capsys):
    def double(numbers, first, last):
        for k in range(first, last):
            numbers[k] *= 2

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])  # numba finds no folder
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(double)
    threads._announced.clear()
    numbers = np.arange(4.0)
    threads.launch(threads.kernel(double), 4, 4, numbers)
    assert numbers.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert re.search(r"no folder.*'double' took \d", capsys.readouterr().err)


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")  # nobody, not even root, can write into it as a folder
    out, output = run(FIRST_USE, NUMBA_CACHE_DIR=str(taken / "cache")).communicate(timeout=300)
    assert float(out) == 600 * 64
    assert "Error" not in output  # another folder, or none, does as well
    assert taken.read_text() == ""


@pytest.mark.usefixtures("_two_threads")
def test_an_error_in_any_thread_comes_back():
    def fails(first: int, last: int) -> None:
        if last == 100:
            raise ZeroDivisionError("in the last portion")

    fails.overloads = True  # as a compiled kernel has
    with pytest.raises(ZeroDivisionError, match="in the last portion"):
        threads.launch(fails, 100, threads.SMALL)


@pytest.mark.usefixtures("_two_threads")
def test_every_task_is_done_once_though_no_helper_comes(monkeypatch):
    monkeypatch.setattr(threads.Crew, "help", lambda *_: None)
    done: list[int] = []

    def record(first: int, last: int) -> None:
        done.extend(range(first, last))

    record.overloads = True
    for tasks in (2, 7, 100):
        done.clear()
        threads.launch(record, tasks, threads.SMALL)
        assert sorted(done) == list(range(tasks))


@pytest.mark.usefixtures("_two_threads")
def test_threads_are_used_again():
    import threading

    u = torch.randn(1, 2000, 64)
    diffuse(u, 0.2)
    before = threading.active_count()
    for _ in range(50):
        diffuse(u, 0.2)
    assert threading.active_count() == before

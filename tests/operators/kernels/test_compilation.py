"""A kernel's first use: by two processes at once, and without a folder to keep it in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from depthpde.operators.kernels import compilation, threads

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


def double(numbers, first, last):
    for k in range(first, last):
        numbers[k] *= 2


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


def test_a_kernel_is_kept_under_its_own_name_beside_no_other(tmp_path):
    out, _ = run(FIRST_USE, NUMBA_CACHE_DIR=str(tmp_path)).communicate(timeout=300)
    assert float(out) == 600 * 64
    kept = [path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")]
    assert kept == ["steps.step"]  # one form for one thread and for many


def test_a_kernel_is_compiled_where_no_folder_can_be_written(monkeypatch, capsys):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])  # numba finds no folder
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(double)
    compilation._announced.clear()
    numbers = np.arange(4.0)
    threads.launch(compilation.kernel(double), 4, 4, numbers)
    assert numbers.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert re.search(r"no folder.*'double' took \d", capsys.readouterr().err)


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")  # nobody, not even root, can write into it as a folder
    out, output = run(FIRST_USE, NUMBA_CACHE_DIR=str(taken / "cache")).communicate(timeout=300)
    assert float(out) == 600 * 64
    assert "Error" not in output  # another folder, or none, does as well
    assert taken.read_text() == ""

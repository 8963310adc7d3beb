"""Kernels on torch's threads: every task once, no reference kept, after a fork, at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from depthpde import diffuse
from depthpde.operators.kernels import compilation, team
from depthpde.operators.kernels.threads import SMALL

SOURCE = Path(team.__file__).parents[4]


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@compilation.kernel
def count(done, first, last):
    for k in range(first, last):
        done[k] += 1


@compilation.kernel
def fail(at, first, last):
    if first <= at[0] < last:
        raise ValueError


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("tasks", "portions"), [(1, 1), (2, 2), (7, 3), (100, 8), (8, 100)])
def test_every_task_is_done_once(tasks, portions, threads):
    done = np.zeros(tasks, np.int64)
    assert count(team.region(), threads, portions, tasks, done) == 0
    assert done.tolist() == [1] * tasks


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", [0, 50, 99])
def test_a_failure_in_any_portion_comes_back(place, threads):
    at = np.array([place])
    assert fail(team.region(), threads, 8, 100, at) == 1
    assert fail(team.region(), threads, 8, 100, at + 100) == 0


def test_whoever_calls_holds_the_only_reference_afterwards():
    tensor = torch.zeros(4096, dtype=torch.int64)
    array, alive = tensor.numpy(), weakref.ref(tensor)
    before = sys.getrefcount(array)
    count(team.region(), 2, 8, 4096, array)
    assert sys.getrefcount(array) == before
    del array, tensor
    assert alive() is None


def test_the_threads_are_torch_s_own():
    code = (
        "import os, torch, depthpde as dp; torch.set_num_threads(2)\n"
        "u = torch.randn(64, 1024, 16); u.clone(); before = len(os.listdir('/proc/self/task'))\n"
        "dp.diffuse(u, 0.2); print(len(os.listdir('/proc/self/task')) - before)"
    )
    if not Path("/proc/self/task").exists():
        pytest.skip("threads are counted in /proc")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.stdout.strip() == "0"


@pytest.mark.usefixtures("_two_threads")
def test_a_fork_after_use_computes_the_same_on_one_thread():
    u = torch.randn(1, SMALL // 64, 64)  # enough for our threads, too little for torch's
    wanted = diffuse(u, 0.2)
    assert team.num_threads() == 2
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for threads it does not have would wait for ever
        alone = team.num_threads() == 1
        os._exit(0 if alone and torch.equal(diffuse(u, 0.2), wanted) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert team.num_threads() == 2


@pytest.mark.usefixtures("_two_threads")
def test_one_thread_where_torch_has_no_openmp(monkeypatch):
    monkeypatch.setattr(torch.backends.openmp, "is_available", lambda: False)
    team.region.cache_clear()
    try:
        assert (team.region(), team.num_threads()) == (0, 1)
    finally:
        team.region.cache_clear()


def test_a_process_that_ends_right_after_a_backward_ends_well():
    code = (
        "import torch, depthpde as dp; torch.set_num_threads(2)\n"
        "layer, u = dp.Diffusion(64), torch.randn(4, 256, 64, requires_grad=True)\n"
        "layer(u).sum().backward()"
    )
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_bit_depends_on_the_number_of_threads(dtype):
    u = torch.randn(3, 1500, 40).to(dtype)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        leaf, ratio = u.clone().requires_grad_(), torch.full((40,), 0.2, requires_grad=True)
        y = diffuse(leaf, ratio)
        found.append((y.detach(), *torch.autograd.grad(y, (leaf, ratio), torch.ones_like(y))))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))

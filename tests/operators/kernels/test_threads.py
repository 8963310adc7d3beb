"""Launching a kernel: on how many threads, in how many portions, and when it fails."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from depthpde.operators.kernels import compilation, team, threads


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@compilation.kernel
def number(portions, first, last):
    portions[first] = last - first


@compilation.kernel
def fail(_, first, last):
    raise MemoryError


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize(
    ("tasks", "size", "sizes"),
    [
        (16, threads.SMALL - 1, [16]),  # too little to be worth a second thread
        (1, threads.SMALL, [1]),
        (3, threads.SMALL, [1, 1, 1]),
        (16, threads.SMALL, [2] * 8),
        (17, threads.SMALL, [2] * 7 + [3]),
    ],
)
def test_tasks_are_cut_into_portions(tasks, size, sizes):
    portions = np.zeros(tasks, np.int64)
    threads.launch(number, tasks, size, portions)
    assert [n for n in portions.tolist() if n] == sizes


def test_one_thread_takes_all_at_once():
    before, portions = torch.get_num_threads(), np.zeros(16, np.int64)
    torch.set_num_threads(1)
    threads.launch(number, 16, threads.SMALL, portions)
    torch.set_num_threads(before)
    assert portions.tolist() == [16] + [0] * 15


@pytest.mark.usefixtures("_two_threads")
def test_a_kernel_without_memory_raises():
    with pytest.raises(MemoryError, match=r"'fail'.*fewer threads"):
        threads.launch(fail, 16, threads.SMALL, np.zeros(1))


def test_no_task_is_shorter_than_it_pays():
    assert threads.tile_length(1, 100) == 64
    assert threads.tile_length(1, 6400) == 200
    assert threads.tile_length(32, 1024) == 1024
    assert team.num_threads() >= 1

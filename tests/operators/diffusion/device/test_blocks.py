"""The block of a launch: the table by default, and what was fastest where it is to be found out."""

from __future__ import annotations

import pytest
import torch

from depthpde.operators.diffusion.device import blocks
from depthpde.operators.diffusion.device import filtering as device
from operators.diffusion.device.test_filtering import PROBLEMS, by_distance


@pytest.fixture
def tuned(monkeypatch):
    monkeypatch.setattr(blocks, "autotune", True)
    monkeypatch.setattr(blocks, "_fastest", {})


def timing(wanted, calls):
    """Make a launch and a clock for which one block is the fastest."""

    def launch(block):
        calls.append(block)
        return block

    return launch, lambda run: 1.0 if run() == wanted else 2.0


@pytest.mark.parametrize(("reach", "block"), [(1, (64, 64)), (16, (128, 32)), (99, (128, 32))])
def test_the_table_serves_by_reach_and_no_program_is_wider_than_the_field(reach, block):
    assert blocks.block_of(reach, 512) == block
    assert blocks.block_of(reach, 5) == (block[0], 8)


def test_nothing_is_timed_by_default_nor_without_a_device_to_time(monkeypatch):
    calls, u = [], torch.zeros(2, 9, 64)
    launch, clock = timing((32, 64), calls)
    assert blocks.choose("a", u, 3, launch, clock) == (64, 64)
    monkeypatch.setattr(blocks, "autotune", True)
    assert blocks.choose("a", u, 3, launch) == (64, 64)
    assert calls == []


@pytest.mark.usefixtures("tuned")
def test_the_fastest_is_found_once_for_each_kernel_precision_and_class_of_sizes():
    calls, u = [], torch.zeros(2, 9, 64)
    launch, clock = timing((128, 64), calls)
    assert blocks.choose("a", u, 3, launch, clock) == (128, 64)
    assert calls == blocks.neighbours((64, 64), 64)
    for like in (u, torch.zeros(4, 5, 64), torch.zeros(1, 32, 64)):  # 17 to 32 sites
        assert blocks.choose("a", like, 3, launch, clock) == (128, 64)
    assert len(calls) == len(blocks.neighbours((64, 64), 64)), "known already"
    for what, field in (("b", u), ("a", u.bfloat16()), ("a", torch.zeros(2, 99, 64))):
        before = len(calls)
        blocks.choose(what, field, 3, launch, clock)
        assert len(calls) > before


@pytest.mark.usefixtures("tuned")
def test_where_all_are_as_fast_the_table_is_kept():
    launch, _ = timing(None, [])
    assert blocks.choose("a", torch.zeros(2, 9, 64), 3, launch, lambda run: 1.0) == (64, 64)


def test_neighbours_begin_with_the_block_and_stay_within_the_field():
    assert blocks.neighbours((64, 64), 64) == [(64, 64), (32, 64), (128, 64), (64, 32)]
    assert (128, 64) in blocks.neighbours((128, 32), 64)


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(each, id=name, marks=[] if name == "causal" else [pytest.mark.drill])
        for name, each in PROBLEMS.items()
    ],
)
def test_results_do_not_depend_on_the_block(problem, monkeypatch):
    u, weights = by_distance(problem, 40, 5, 3)
    results = []
    for block in blocks.neighbours((16, 16), 20):
        monkeypatch.setattr(blocks, "BLOCKS", {64: block})
        results.append((device.apply(u, weights, None, problem),
                        *device.pull(u, u, weights, None, problem)))  # fmt: skip
    for each in results[1:]:
        torch.testing.assert_close(each, results[0], rtol=1e-12, atol=1e-12)

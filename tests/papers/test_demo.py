"""The demo's plan: what is compared, and that the comparison is fair."""

from __future__ import annotations

import torch

from depthpde.papers.demo import plan


def test_the_demo_is_four_variants_and_three_seeds_of_one_generated_task():
    asked = plan()
    assert len(asked.runs) == len(asked.cells) == 12
    assert {run.about.source for run in asked.runs} == {None}  # nothing to download
    assert asked.baseline == "baseline"


def test_the_control_starts_where_diffusion_starts():
    runs = {cell.variant: run for cell, run in plan(seeds=1).cells}
    tokens = torch.randint(1, 15, (2, 32), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    with torch.no_grad():
        said = {
            name: runs[name].build().eval()(tokens, mask)
            for name in ("baseline", "after embedding", "depthwise conv")
        }
    torch.testing.assert_close(said["after embedding"], said["depthwise conv"])
    assert not torch.allclose(said["baseline"], said["after embedding"])


def test_a_short_demo_warms_up_for_less_than_its_length():
    assert {run.training.warmup for run in plan(updates=2).runs} == {1}

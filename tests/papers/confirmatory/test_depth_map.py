"""The map by depth, clipping and rate is of five tuning seeds; fresh seeds test."""

from __future__ import annotations

from depthpde.papers.confirmatory.depth_map import DEPTHS, EXPERIMENT, KINDS, PROTOCOL
from depthpde.sweeps.study import tuning_plan


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "b273ecf7ecb99845"


def test_every_depth_is_trained_with_norms_without_and_unclipped_at_every_rate():
    runs = tuning_plan(EXPERIMENT.plan()).runs
    found = {
        (run.model.blocks, str(run.model.stability.norm), run.training.clip, run.seed,
         run.training.learning_rate)
        for run in runs
    }  # fmt: skip
    assert len(found) == len(runs) == len(DEPTHS) * len(KINDS) * 5 * 3


def test_what_norms_gain_is_compared_between_the_deepest_and_the_shallowest():
    growth = PROTOCOL.contrasts[1]
    assert growth.beyond == ("norms, 6 blocks", "no norms, no clipping, 6 blocks")
    assert (growth.variant, growth.against) == (
        "norms, 48 blocks",
        "no norms, no clipping, 48 blocks",
    )

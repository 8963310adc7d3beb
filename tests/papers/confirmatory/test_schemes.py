"""The same two models under every scheme and step; a test names cells that are run."""

from __future__ import annotations

from depthpde.papers.confirmatory.schemes import EXPERIMENT, METHODS, PROTOCOL, STEPS, VARIANTS


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "73b5a542c13c6547"


def test_every_scheme_and_step_has_a_pair_that_differs_in_norms_alone():
    runs = {cell.variant: run for cell, run in EXPERIMENT.plan(seeds=1).cells}
    assert len(runs) == 2 * len(METHODS) * len(STEPS) == len(VARIANTS)
    for contrast in PROTOCOL.contrasts:
        ours, theirs = runs[contrast.variant], runs[contrast.against]
        assert ours.simulator == theirs.simulator
        assert ours.model.stability != theirs.model.stability
        assert ours.training.clip is None

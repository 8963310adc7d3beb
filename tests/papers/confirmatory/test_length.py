"""Trained at 256 bytes, read at more; nothing in a variant knows the length."""

from __future__ import annotations

from depthpde.papers.confirmatory.length import EXPERIMENT, LONGER, PROTOCOL
from depthpde.records.protocols.endpoints import READINGS
from depthpde.runs.readings import carried


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "5eddcb639bc53a92"


def test_every_variant_reads_the_longer_texts_and_the_endpoint_is_among_them():
    (level,) = READINGS[LONGER][1]
    for _, run in EXPERIMENT.plan(seeds=1).cells:
        assert level in run.transfer
        assert carried(run.build(), run, level).config.length == 1024

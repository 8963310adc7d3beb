"""The same images at twice the resolution; time has units, taps do not."""

from __future__ import annotations

from depthpde.data.tasks import TASKS
from depthpde.papers.confirmatory.resolution import EXPERIMENT, FINER, PROTOCOL, TWICE
from depthpde.records.protocols.endpoints import READINGS
from depthpde.runs.readings import carried


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "590cceca04a7705b"


def test_the_finer_task_is_of_the_same_family_at_twice_the_sides():
    for task, finer in FINER.items():
        assert TASKS[task].family == TASKS[finer].family
        assert tuple(2 * side for side in TASKS[task].grid) == TASKS[finer].grid
        assert finer in READINGS[TWICE][1]


def test_every_variant_can_be_carried_over():
    for cell, run in EXPERIMENT.plan(seeds=1).cells:
        if cell.task == "mnist-mini":
            assert carried(run.build(), run, "mnist").config.grid == (28, 28)

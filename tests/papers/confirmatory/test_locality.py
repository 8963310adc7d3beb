"""Every model is read in windows and in shuffled blocks; endpoints are among the readings."""

from __future__ import annotations

from depthpde.data.task import TaskKind
from depthpde.data.tasks import TASKS
from depthpde.papers.confirmatory.locality import BLOCKWISE, EXPERIMENT, NEAR, PROTOCOL
from depthpde.records.protocols.endpoints import READINGS


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "bd5b56f83c8913e2"


def test_what_is_tested_is_read_by_every_run():
    (window,), (block,) = READINGS[NEAR][1], READINGS[BLOCKWISE][1]
    for _, run in EXPERIMENT.plan(seeds=1).cells:
        assert int(window) in run.windows
        assert int(block) in run.shuffles


def test_every_mini_task_with_one_answer_an_example_is_read():
    kinds = (TaskKind.SEQUENCE, TaskKind.IMAGE, TaskKind.PAIR)
    mini = {n for n, task in TASKS.items() if n.endswith("-mini") and task.kind in kinds}
    assert set(EXPERIMENT.tasks("mini")) == mini

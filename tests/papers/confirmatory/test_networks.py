"""Networks without attention: the same layers and gains, each network at its own task."""

from __future__ import annotations

from depthpde.layers.convolution import Convolution
from depthpde.layers.interaction import Attention
from depthpde.layers.recurrence import Recurrence
from depthpde.papers.confirmatory.networks import BLUR, EXPERIMENT, FREE, NETWORKS, PROTOCOL
from depthpde.papers.placement import BASELINE, EMBEDDING
from depthpde.training.optimizer import build_optimizer


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "641c84a4685d7ab9"


def test_nothing_attends_and_every_task_has_its_network():
    wanted = {"image-mini": Convolution, "text-mini": Recurrence, "listops-mini": Recurrence}
    assert set(wanted) == set(NETWORKS)
    for cell, run in EXPERIMENT.plan(seeds=1).cells:
        kinds = {type(each) for each in run.build().modules()}
        assert wanted[cell.task] in kinds
        assert Attention not in kinds


def test_every_added_parameter_has_the_same_gain_and_the_shared_ones_start_alike():
    plan = EXPERIMENT.plan(seeds=1)
    bare = {c.task: run.build().state_dict() for c, run in plan.cells if c.variant == "baseline"}
    for cell, run in plan.cells:
        model = run.build()
        added = {n: p for n, p in model.named_parameters() if n not in bare[cell.task]}
        ids = {id(p) for p in added.values()}
        groups = build_optimizer(model, run.training).param_groups
        assert {g["gain"] for g in groups for p in g["params"] if id(p) in ids} <= {10.0}
        state = model.state_dict()
        assert all(state[n].equal(value) for n, value in bare[cell.task].items()), cell.variant
        assert bool(added) is (cell.variant in (EMBEDDING, FREE.label))


def test_the_contrasts_are_those_of_the_question_and_its_controls():
    assert [each.against for each in PROTOCOL.contrasts] == [BASELINE.label, FREE.label, BLUR]

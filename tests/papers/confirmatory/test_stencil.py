"""H6: the same reach and gain for every stencil; only start and bound differ."""

from __future__ import annotations

from depthpde.layers.stencil import LearnedStencil
from depthpde.papers.confirmatory.stencil import (
    BOUNDED,
    EXPERIMENT,
    FREE,
    FREE_FROM_IDENTITY,
    PROTOCOL,
    STEPS,
    UPDATES,
)
from depthpde.records.protocols.protocol import Claimed
from depthpde.sweeps.scale import Scale
from depthpde.sweeps.study import confirmation_plan, tuning_plan
from depthpde.training.optimizer import build_optimizer


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "6254cdd44c8b75c2"


def test_rates_are_tuned_at_two_fifths_of_the_updates():
    plan = EXPERIMENT.plan()
    tuning = tuning_plan(plan)
    assert len(tuning.runs) == 6 * 3 * 4
    for each in tuning.runs:
        assert each.training.updates == round(0.4 * UPDATES[each.task])
    tests = confirmation_plan(plan, {}, PROTOCOL.looks[0])
    assert len(tests.runs) == 6 * 6 * 4
    assert EXPERIMENT.plan(Scale.QUICK).study is None


def test_stencils_differ_in_start_and_bound_alone():
    plan = EXPERIMENT.plan(Scale.QUICK, seeds=1)
    runs = {c.variant: run for c, run in plan.cells if c.task == "listops-mini"}
    layers = {}
    for label in (BOUNDED, FREE, FREE_FROM_IDENTITY):
        (layers[label],) = (m for m in runs[label].build().modules() if type(m) is LearnedStencil)
    assert {each.reach for each in layers.values()} == {16}
    assert layers[FREE].bound is None
    assert layers[BOUNDED].taps.equal(layers[FREE].taps)
    identity = layers[FREE_FROM_IDENTITY].taps
    assert identity[16].eq(1).all()
    assert identity.abs().sum() == identity.shape[1]


def test_every_added_parameter_has_the_same_gain():
    plan = EXPERIMENT.plan(Scale.QUICK, seeds=1)
    for cell, run in plan.cells:
        if cell.task == "listops-mini" and cell.variant in (BOUNDED, FREE, STEPS):
            model = run.build()
            added = {id(p) for n, p in model.named_parameters() if n.endswith("theta")}
            groups = build_optimizer(model, run.training).param_groups
            gains = {g["gain"] for g in groups for p in g["params"] if id(p) in added}
            assert gains == {10.0}


def test_the_order_of_tests_is_start_bound_steps_rotary():
    assert [(each.variant, each.against) for each in PROTOCOL.contrasts] == [
        (FREE, FREE_FROM_IDENTITY),
        (BOUNDED, FREE),
        (BOUNDED, STEPS),
        (BOUNDED, "rotary"),
    ]
    assert PROTOCOL.contrasts[1].claimed is Claimed.EQUIVALENT

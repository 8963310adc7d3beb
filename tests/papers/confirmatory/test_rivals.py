"""Every rival learns with diffusion's gain, and Canon meets as many steps as it reaches."""

from __future__ import annotations

from depthpde.layers.rivals import Canon
from depthpde.papers.confirmatory.rivals import CANON, EXPERIMENT, PROTOCOL, THREE
from depthpde.training.optimizer import build_optimizer


def test_the_protocol_is_the_one_that_was_committed_before_the_first_run():
    assert PROTOCOL.digest == "2f2d8a0246861798"


def test_every_added_parameter_has_the_same_gain():
    plan = EXPERIMENT.plan(seeds=1)
    bare = {n for n, _ in plan.cells[0][1].build().named_parameters()}
    for cell, run in plan.cells:
        model = run.build()
        added = {id(p) for n, p in model.named_parameters() if n not in bare}
        groups = build_optimizer(model, run.training).param_groups
        gains = {g["gain"] for g in groups for p in g["params"] if id(p) in added}
        assert gains <= {10.0}, cell.variant


def test_canon_is_compared_at_its_own_reach():
    runs = {cell.variant: run for cell, run in EXPERIMENT.plan(seeds=1).cells}
    (canon,) = (each for each in runs[CANON].build().modules() if type(each) is Canon)
    assert runs[THREE].model.placements[0].layer.steps == canon.reach == 3
    assert (PROTOCOL.contrasts[-1].variant, PROTOCOL.contrasts[-1].against) == (THREE, CANON)

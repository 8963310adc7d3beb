"""Costs are ratios to the bare model; parameters and kept memory are exact counts."""

from __future__ import annotations

from depthpde.models.config import ModelConfig
from depthpde.models.cost import cost
from depthpde.papers.measurements.cost import measure


def test_nothing_placed_costs_what_nothing_costs():
    found = measure({}, 16, 3)
    assert found["memory"] == 1.0
    assert found["parameters"] == 1.0
    assert 0.2 < found["time"] < 5


def test_parameters_are_those_of_the_formula():
    changes = {"positions": ("between_blocks",)}
    shape = {"dim": 64, "blocks": 2, "vocabulary": 256, "length": 16, "classes": 2}
    bare, placed = (
        cost(ModelConfig(**shape | more), batch=1, length=16).parameters.total
        for more in ({}, changes)
    )
    assert measure(changes, 16, 1)["parameters"] == placed / bare


def test_diffusion_in_every_block_keeps_more_for_the_backward_pass():
    once = measure({"positions": ("after_embedding",)}, 64, 1)["memory"]
    everywhere = measure({"positions": ("after_embedding", "before_norm", "after_ffn")}, 64, 1)
    assert 1.0 <= once < everywhere["memory"]

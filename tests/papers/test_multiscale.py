"""A mix of scales is judged against single ones."""

from __future__ import annotations

import pytest

from depthpde.layers.multiscale import SCALES as LAYER_SCALES
from depthpde.papers.multiscale import SCALES
from depthpde.records.verdicts import Outcome
from papers.invented import evidence, judge, verdicts


def test_the_scales_are_those_of_the_layer():
    assert {name: each.steps for name, each in LAYER_SCALES.items()} == SCALES
    assert list(LAYER_SCALES) == list(SCALES)


def test_a_mix_is_judged_against_every_single_scale():
    effects = {"slow": 0.0, "medium": 1.0, "fast": 3.0, "mixed": 2.0, "mixed, gated": 2.0}
    four = [Outcome.SUPPORTED, Outcome.SUPPORTED, Outcome.CONTRADICTED, Outcome.EQUIVALENT]
    assert verdicts(effects, name="multiscale") == four
    for fixed, wanted in ((1.0, Outcome.SUPPORTED), (3.0, Outcome.EQUIVALENT)):
        found = verdicts({**effects, "fast, fixed": fixed}, name="multiscale")
        assert found[:3] == four[:3]
        assert found[3] is wanted


def test_the_grid_of_positions_is_judged_as_the_factorial_that_it_is():
    scales = {"slow": 0.0, "medium": 1.0, "fast": 2.0, "mixed": 4.0}
    places = ("after embedding", "in heads")
    effects = {
        f"{place}, {s}": at + points
        for at, place in enumerate(places)
        for s, points in scales.items()
    }
    found = judge(evidence(effects, name="multiscale-positions", spread=0.1))
    mix, first = found.claims
    assert mix.effect == pytest.approx(3.0, abs=0.2), "4 − (0 + 1 + 2) / 3, at every position"
    assert first.effect == pytest.approx(1.75, abs=0.3)
    assert mix.verdict is first.verdict is Outcome.SUPPORTED
    rows = {row["factor"]: row for row in next(iter(found.tables.values()))}
    assert rows["in heads, all scales"]["points [95 %]"].startswith("+2.")
    assert len(rows) == 2 + 4
    part = {"in heads, mixed": 1.0}
    assert judge(evidence(part, name="multiscale-positions")).claims == ()

"""A mix of scales is judged against single ones."""

from __future__ import annotations

from depthpde.layers.multiscale import SCALES as LAYER_SCALES
from depthpde.papers.multiscale import SCALES
from depthpde.records.findings import FindingVerdict
from papers.invented import evidence, judge, verdicts


def test_the_scales_are_those_of_the_layer():
    assert {name: each.steps for name, each in LAYER_SCALES.items()} == SCALES
    assert list(LAYER_SCALES) == list(SCALES)


def test_a_mix_is_judged_against_every_single_scale():
    effects = {"slow": 0.0, "medium": 1.0, "fast": 3.0, "mixed": 2.0, "mixed, gated": 2.0}
    four = [
        FindingVerdict.CONFIRMED,
        FindingVerdict.CONFIRMED,
        FindingVerdict.NOT_CONFIRMED,
        FindingVerdict.NOT_CONFIRMED,
    ]
    assert verdicts(effects, name="multiscale") == four
    for fixed, last in ((1.0, FindingVerdict.CONFIRMED), (3.0, FindingVerdict.NOT_CONFIRMED)):
        found = verdicts({**effects, "fast, fixed": fixed}, name="multiscale")
        assert found == [*four, last]


def test_a_mix_at_a_position_is_judged_against_the_best_single_scale_there():
    effects = {"in heads, slow": 0.0, "in heads, fast": 2.0, "in heads, mixed": 1.0}
    (found,) = judge(evidence(effects, name="multiscale-positions")).claims
    assert found.verdict is FindingVerdict.NOT_CONFIRMED
    assert "the best single scale there, in heads, fast: −0.9 points" in found.finding
    alone = {"in heads, mixed": 1.0}
    assert judge(evidence(alone, name="multiscale-positions")).claims == ()

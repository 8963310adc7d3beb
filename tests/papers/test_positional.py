"""Diffusion is judged within each encoding."""

from __future__ import annotations

from depthpde.layers.embedding import Encoding
from depthpde.papers.positional import ENCODINGS
from depthpde.records.verdicts import Outcome
from papers.invented import verdicts


def test_every_encoding_is_asked_about():
    assert list(ENCODINGS) == [each.value for each in Encoding]


def test_diffusion_is_judged_within_each_encoding():
    effects = {"no sites": -5.0, "no sites + diffusion": -3.0}
    assert verdicts(effects, name="positional") == [Outcome.SUPPORTED]

"""A model agrees with itself, and less with a stranger."""

import pytest

from depthpde.data.catalog import load
from depthpde.papers.measurements.fidelity import agreement, continuous_agreement
from depthpde.papers.measurements.observation import first_batch
from papers.tiny import tiny_plan


def test_a_model_agrees_with_itself_and_less_with_a_stranger(folders, prepared):
    split = load("listops-mini", "test", out=prepared)
    runs = tiny_plan(seeds=2).runs
    same, other = runs[0].build().eval(), runs[8].build().eval()
    batch = first_batch(split, 4)
    own, far = agreement(same, same, batch), agreement(same, other, batch)
    assert own["centred cosine"] == pytest.approx([1.0] * 3, abs=1e-5)
    assert own["attention cosine"] == pytest.approx([1.0] * 2, abs=1e-5)
    assert own["attention JS"] == pytest.approx([0.0] * 2, abs=1e-5)
    assert far["centred cosine"][-1] < 0.7
    assert far["attention cosine"][0] < 0.999


def test_the_continuous_equation_starts_with_the_model_and_leaves_it(folders, prepared):
    model = tiny_plan().runs[0].build().eval()
    batch = first_batch(load("listops-mini", "test", out=prepared), 4)
    found = continuous_agreement(model, batch)
    assert found["centred cosine"][0] == pytest.approx(1.0, abs=1e-5)
    assert 0.3 < found["centred cosine"][-1] < 0.9999

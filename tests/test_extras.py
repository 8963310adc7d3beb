"""Whatever needs an extra that is not installed says which one; every extra named exists."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import depthpde as dp
from depthpde.runs.tracking import TRACKERS

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODEL = dp.ModelConfig(dim=8, blocks=1, heads=2, vocabulary=9, length=8, classes=2)


def make_insertion() -> dp.Insertion:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return dp.insert(layer, "after_ffn")


def plot_path() -> Any:
    return dp.simulate(
        dp.Equation(diffusion=0.1), torch.randn(1, 8, 2), times=torch.linspace(0, 1, 3)
    ).plot()


def with_torchdiffeq() -> Any:
    return dp.simulate(
        dp.Equation(diffusion=0.1), torch.randn(1, 8, 2), times=torch.linspace(0, 1, 3),
        method="torchdiffeq:dopri5",
    )  # fmt: skip


def on_the_command_line(*words: str) -> None:
    from depthpde.cli.main import main

    sys.exit(main(list(words)))


def look_at_a_folder() -> None:
    Path("model").mkdir()
    Path("model/config.json").write_text('{"model_type": "bert"}')
    on_the_command_line("doctor", "--hf", "model")


def open_tracker(name: str) -> None:
    dp.tracker(name, "x", run="y").__enter__()


FEATURES: dict[str, tuple[str, str, Callable[[], object]]] = {
    "insertion.plot": ("plot", "matplotlib.figure", lambda: make_insertion().plot()),
    "path.plot": ("plot", "matplotlib.figure", plot_path),
    "torchdiffeq": ("peers", "torchdiffeq", with_torchdiffeq),
    "hub": ("hf", "huggingface_hub", lambda: dp.Classifier.from_pretrained("a/b")),
    "push": ("hf", "huggingface_hub", lambda: dp.Classifier(MODEL).push_to_hub("a/b")),
    "auto": ("hf", "transformers", dp.register_auto_classes),
    "doctor --hf": ("hf", "transformers", look_at_a_folder),
    **{name: ("track", name, partial(open_tracker, name)) for name in TRACKERS},
    **{
        line: (extra, module, partial(on_the_command_line, *line.split()))
        for line, extra, module in (
            ("sweep placement --ray auto", "ray", "ray"),
            ("sweep placement --slurm x", "slurm", "submitit"),
            ("train listops-mini --track wandb", "track", "wandb"),
        )
    },
}


@pytest.mark.parametrize("feature", list(FEATURES))
def test_a_feature_names_its_extra(feature, monkeypatch, tmp_path, capsys):
    extra, module, use = FEATURES[feature]
    monkeypatch.chdir(tmp_path)
    for name in [each for each in sys.modules if each.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises((SystemExit, ValueError)) as raised:
        use()
    output = f"{raised.value} {capsys.readouterr().err}"
    assert f"pip install 'depthpde[{extra}]'" in output
    assert not (tmp_path / "out").exists()  # nothing was begun


def test_every_extra_that_is_named_exists_and_the_page_lists_all():
    named = {
        each
        for path in (ROOT / "src").rglob("*.py")
        for each in re.findall(r"depthpde\[(\w+)\]", path.read_text(encoding="utf-8"))
    }
    assert named <= set(EXTRAS)
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert [extra for extra in EXTRAS if f"`{extra}`" not in page] == []

"""Every Python block of the guide runs as it stands, and what it names is there."""

import re
import runpy
from pathlib import Path

import pytest

from depthpde.cli.main import parser
from depthpde.runs.presets import PRESETS

GUIDE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
COMMANDS = re.findall(r"^(?:torchrun .*cli\.main|depthpde) (train .*)$", GUIDE, flags=re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_recipe_runs_as_written(block, tmp_path, capsys):
    recipe = tmp_path / "recipe.py"
    recipe.write_text(block, encoding="utf-8")
    assert runpy.run_path(str(recipe))["__name__"] == "<run_path>"


def test_the_guide_has_recipes_and_commands():
    assert (len(BLOCKS), len(COMMANDS)) == (3, 6)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood_and_makes_a_run(command, capsys):
    arguments = parser().parse_args([*command.split(), "--print_config"])
    arguments.device = "cpu"
    assert arguments.run(arguments) == 0
    assert '"task"' in capsys.readouterr().out


def test_the_guide_names_every_preset():
    assert all(f"| `{name}` |" in GUIDE for name in PRESETS)

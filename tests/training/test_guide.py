"""The commands of docs/training.md are understood, and the presets it names are there."""

import re
from pathlib import Path

import pytest

from depthpde.cli.main import parser
from depthpde.runs.presets import PRESETS

GUIDE = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:torchrun .*cli\.main|depthpde) (train .*)$", GUIDE, flags=re.MULTILINE)


def test_the_guide_has_commands():
    assert len(COMMANDS) == 6


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood_and_makes_a_run(command, capsys):
    arguments = parser().parse_args([*command.split(), "--print_config"])
    arguments.device = "cpu"
    assert arguments.run(arguments) == 0
    assert '"task"' in capsys.readouterr().out


def test_the_guide_names_every_preset():
    assert all(f"| `{name}` |" in GUIDE for name in PRESETS)

"""docs/sweeps.md: its grids are grids, and both ways of writing one give the same runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from depthpde.cli.main import parser
from depthpde.sweeps.grid_file import read_plan
from recipes import read_recipes, run_recipe

GUIDE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def test_the_file_and_the_python_of_the_guide_are_the_same_runs(tmp_path):
    (grid,) = re.findall(r"```yaml\n(name: width.*?)```", GUIDE, re.S)
    (tmp_path / "grid.yaml").write_text(grid)
    written = read_plan(tmp_path / "grid.yaml")
    (recipe,) = read_recipes("docs/sweeps.md")
    code = recipe.code.replace("out/results", str(tmp_path))
    # all but the hours of computing
    names = run_recipe(replace(recipe, code=code.partition("outcome =")[0]), tmp_path)
    runs = {run.id for run in written.runs}
    assert {run.id for run in names["plan"].runs} < runs
    assert len(runs) == 18
    assert (tmp_path / "grids" / "width.json").exists()


@pytest.mark.parametrize("line", re.findall(r"^depthpde (sweep [^#\n]*)", GUIDE, re.M))
def test_the_commands_of_the_guide_are_understood(line):
    assert parser().parse_args(line.split()).verb == "sweep"

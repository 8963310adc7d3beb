"""Every block of Python in docs/doctor.md runs as written; its thresholds are the real ones."""

import json
import re
import runpy
from importlib.resources import files
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_recipes():
    assert len(RECIPES) == 2


@pytest.mark.parametrize(
    ("recipe", "left"), [*zip(RECIPES, ("doctor.html", "doctor.jsonl"), strict=True)]
)
def test_a_recipe_runs_and_leaves_what_it_says(recipe, left, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "recipe.py"
    script.write_text(recipe, encoding="utf-8")
    runpy.run_path(str(script))
    assert (tmp_path / left).stat().st_size > 0


def test_the_page_tells_the_thresholds_that_are_used():
    said = json.loads((files("depthpde.doctor") / "thresholds.json").read_text(encoding="utf-8"))
    table = PAGE.split("## The conditions")[1].split("## Does it find")[0]
    for condition, row in said["thresholds"].items():
        (line,) = (line for line in table.splitlines() if line.startswith(f"| {condition} |"))
        known = [row["ill"]] if row["ill"] > 0 and row["watch"] != row["ill"] else []
        assert all(f"{value:g}".replace("e-0", "e-") in line for value in known), condition

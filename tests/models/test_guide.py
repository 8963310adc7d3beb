"""Every code block of the guide runs as it stands."""

import re
import runpy
from pathlib import Path

import pytest

from depthpde.layers.registry import LayerKind
from depthpde.models.position import OPTIONS, ROUTES

GUIDE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_recipe_runs_as_written(block, tmp_path, capsys):
    recipe = tmp_path / "recipe.py"
    recipe.write_text(block, encoding="utf-8")
    assert "depthpde" in block
    assert runpy.run_path(str(recipe))["__name__"] == "<run_path>"


def test_the_guide_has_recipes():
    assert len(BLOCKS) == 7


def test_the_guide_names_every_route_and_option_in_order():
    for position, routes in ROUTES.items():
        row = next(line for line in GUIDE.splitlines() if line.startswith(f"| `{position}` "))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2] == ", ".join(routes)
        assert cells[3] == ", ".join(f"`{each}`" for each in OPTIONS.get(position, ()))


def test_the_guide_names_every_layer():
    for kind in LayerKind:
        assert f"`{kind}`" in GUIDE

"""docs/models.md names every position, route, option and layer."""

from pathlib import Path

from depthpde.layers.registry import LayerKind
from depthpde.models.position import OPTIONS, ROUTES

GUIDE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_guide_names_every_route_and_option_in_order():
    for position, routes in ROUTES.items():
        row = next(line for line in GUIDE.splitlines() if line.startswith(f"| `{position}` "))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[2] == ", ".join(routes)
        assert cells[3] == ", ".join(f"`{each}`" for each in OPTIONS.get(position, ()))


def test_the_guide_names_every_layer():
    for kind in LayerKind:
        assert f"`{kind}`" in GUIDE

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from depthpde.pages.figures.diagram import diagram
from depthpde.pages.style import DARK, LIGHT, csp_hash, read_shared, standalone, style_sheet

SOURCE = Path(__file__).parents[2] / "src" / "depthpde"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def blend(colour: str, ground: str, opacity: float) -> str:
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in pairs)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "quiet", "accent", "warning"])
def test_every_colour_of_text_is_readable_on_the_ground_and_on_panels(theme, name):
    assert contrast(theme[name], theme["ground"]) >= 4.5
    assert contrast(theme[name], theme["panel"]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_of_baselines_stand_out_from_the_ground(theme):
    assert contrast(theme["baseline"], theme["ground"]) >= 3


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("tint", ["accent", "warning"])
def test_text_on_the_deepest_tint_is_readable(theme, tint):
    from depthpde.pages.figures.diagram import DEEPEST as DISC
    from depthpde.pages.figures.heatmap import DEEPEST as SQUARE

    for depth in (DISC, SQUARE):
        assert contrast(theme["ink"], blend(theme[tint], theme["ground"], depth)) >= 4.5


def test_every_colour_is_a_variable_that_both_themes_have():
    assert set(LIGHT) == set(DARK)
    sheets = [*SOURCE.rglob("*.css")]
    assert {each.name for each in sheets} >= {"style.css", "figure.css", "chart.css", "dash.css"}
    for sheet in sheets:
        rules = sheet.read_text(encoding="utf-8")
        assert set(re.findall(r"var\(--(\w+)\)", rules)) <= set(LIGHT), sheet
        assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(", rules), f"{sheet} names a colour"


def test_no_sheet_loads_anything():
    for sheet in SOURCE.rglob("*.css"):
        assert not re.search(r"url\(|@import", sheet.read_text(encoding="utf-8")), sheet


def test_a_page_may_add_rules_of_its_own_behind_the_shared_ones():
    whole = style_sheet("td.mine { color: var(--accent); }")
    assert whole.endswith("td.mine { color: var(--accent); }")
    assert whole.index("--accent: " + LIGHT["accent"]) < whole.index("--accent: " + DARK["accent"])
    assert read_shared("figure.css") in whole


def test_paper_is_light_whatever_the_screen_prefers():
    palette = style_sheet().split(read_shared("style.css"))[0]
    dark, paper = palette.index("prefers-color-scheme: dark"), palette.index("@media print")
    assert dark < paper, "the later rule wins"
    assert LIGHT["ground"] in palette[paper:]


def test_the_hash_is_that_of_the_text():
    digest = base64.b64encode(hashlib.sha256(b"p {}").digest()).decode()
    assert csp_hash("p {}") == f"sha256-{digest}"


def test_a_figure_of_its_own_is_xml_with_its_colours_inside():
    alone = standalone(diagram({}))
    root = ET.fromstring(alone)
    assert "var(" not in alone
    assert root[0].tag.endswith("style")
    assert LIGHT["accent"] in root[0].text
    assert f"background: {LIGHT['ground']}" in root[0].text  # readable on a dark page


def dashes() -> dict[str, str]:
    """Return the dashes of every kind of line; a solid line has none."""
    rules = re.findall(r"\.line-([\w-]+) {(.*?)}", read_shared("figure.css"), flags=re.S)
    found = {name: re.search(r"stroke-dasharray: ([\d. ]+)", rule) for name, rule in rules}
    return {name: "" if dash is None else dash[1].strip() for name, dash in found.items()}


def test_lines_that_share_a_figure_are_told_apart_without_colour():
    known = dashes()
    roles = ("ours", "baseline", "control", "other", "formula", "warning")
    assert len({known[role] for role in roles}) == len(roles)
    baselines = {known[name] for name in known if name.startswith("baseline")}
    assert len(baselines) == 3
    assert not baselines & {known[role] for role in ("ours", "other", "formula", "warning")}

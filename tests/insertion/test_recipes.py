"""Every recipe of docs/insertion.md runs as it is written."""

import re
import runpy
from pathlib import Path

import pytest

from insertion.alone import run_with_timm

PAGE = (Path(__file__).parents[2] / "docs" / "insertion.md").read_text()
RECIPES = {
    section.split("\n")[0]: code
    for section in PAGE.split("\n## ")
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL)
}


@pytest.fixture(params=RECIPES)
def title(request):
    return request.param


def test_there_is_a_recipe_for_every_family_and_for_an_unknown_one():
    assert len(RECIPES) == PAGE.count("```python") == 9


def test_recipe_runs(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "recipe.py"
    script.write_text(RECIPES[title])
    if title == "timm":
        assert "AdaptiveDiffusion · after_ffn · branch" in run_with_timm(script)
    else:
        runpy.run_path(str(script))

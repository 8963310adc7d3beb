"""The Python of README and docs: read, joined and run in one way by every test that needs it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
IMPORT = "import depthpde as dp"


@dataclass(frozen=True)
class Recipe:
    """A block, and the blocks that go on from it: those that do not import the package again."""

    page: str
    title: str
    """The heading above the block."""
    code: str

    @property
    def name(self) -> str:
        return re.sub(r"\W+", "_", f"{self.page} {self.title}".lower()).strip("_")


def read_recipes(page: str) -> list[Recipe]:
    """Return the recipes of a page, such as ``docs/models.md``, in order."""
    found: list[Recipe] = []
    for section in re.split(r"^#+ ", (ROOT / page).read_text(encoding="utf-8"), flags=re.M):
        for code in re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL):
            if IMPORT in code:
                found.append(Recipe(page, section.split("\n")[0], code))
            else:
                before = found.pop()
                found.append(Recipe(page, before.title, f"{before.code}\n{code}"))
    return found


def all_recipes() -> list[Recipe]:
    pages = (page.relative_to(ROOT).as_posix() for page in PAGES)
    return [recipe for page in pages for recipe in read_recipes(page)]


def run_recipe(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Run a recipe inside a folder and return its names."""
    names: dict[str, Any] = {"__name__": recipe.name}
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(recipe.code, recipe.page, "exec"), names)
    finally:
        os.chdir(before)
    return names

"""The Python of README and docs runs as written, type-checks, and needs no inner module."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import depthpde as dp
from insertion.alone import run_with_timm
from recipes import PAGES, ROOT, all_recipes, run_recipe

RECIPES = all_recipes()
SOURCE = ROOT / "src"
ELSEWHERE = {
    "docs/report.md": "tests/report/test_page.py brings a results folder",
    "docs/sweeps.md": "tests/sweeps/test_guide.py leaves out the hours of computing",
}
LEFT = {
    "README.md": ("diffusion.safetensors", "doctor.html"),
    "docs/doctor.md": ("doctor.html", "doctor.jsonl"),
}
"""Files that the recipes of a page leave; each recipe leaves at least one."""
INNER = (
    "data", "doctor.alarms.live", "files", "insertion", "isolation", "layers", "models",
    "operators", "papers", "records", "simulator", "solvers", "sweeps", "training", "web",
)  # fmt: skip
"""What benchmarks measure, replace or write inside: generators, a block, the server, a record."""
UNTYPED = ("accelerate", "lightning", "peft", "transformers", "timm", "x_transformers")
"""Libraries whose own types are not judged here, and would take minutes."""


def test_no_page_lost_its_recipes():
    assert {recipe.page for recipe in RECIPES} >= {
        "README.md", "docs/data.md", "docs/doctor.md", "docs/insertion.md", "docs/models.md",
        "docs/reach.md",
        "docs/report.md", "docs/simulator.md", "docs/sweeps.md", "docs/training.md",
    }  # fmt: skip
    assert len(RECIPES) >= 26
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize(
    "page", [*PAGES, *(ROOT / "benchmarks").glob("*.py")], ids=lambda p: p.name
)
def test_no_page_imports_an_inner_module(page):
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^\s*(?:from|import) depthpde\.([\w.]+)", text, re.M)
    inner = [name for name in found if page.suffix == ".md" or not name.startswith(INNER)]
    assert inner == []


@pytest.mark.parametrize(
    "recipe", [each for each in RECIPES if each.page not in ELSEWHERE], ids=lambda r: r.name
)
def test_a_recipe_runs_as_written(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if "import timm" in recipe.code:
        script = tmp_path / "recipe.py"
        script.write_text(recipe.code, encoding="utf-8")
        assert "AdaptiveDiffusion · after_ffn · branch" in run_with_timm(script)
    else:
        with warnings.catch_warnings():
            if "import lightning" in recipe.code:
                warnings.simplefilter("ignore")  # of workers, log folders and srun
            assert run_recipe(recipe, tmp_path)["dp"].__name__ == "depthpde"
    left = [name for name in LEFT.get(recipe.page, ()) if (tmp_path / name).is_file()]
    assert left or recipe.page not in LEFT


WRONG = "import depthpde as dp\n\ndp.Diffusion(dimension=64)\ndp.difuse\n"


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """Every recipe as a module of one folder, one with every public name, and a wrong one."""
    folder = tmp_path_factory.mktemp("recipes")
    for recipe in RECIPES:
        (folder / f"{recipe.name}.py").write_text(recipe.code, encoding="utf-8")
    names = "".join(f"reveal_type(dp.{name})\n" for name in dp.__all__)
    (folder / "names.py").write_text(f"import depthpde as dp\n\n{names}")
    (folder / "wrong.py").write_text(WRONG)
    return folder


def write_stubs(folder: Path) -> Path:
    """Write stubs that leave the libraries of recipes untyped, for both checkers alike."""
    for name in UNTYPED:
        stub = folder / "typings" / name / "__init__.pyi"
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text("from typing import Any\ndef __getattr__(name: str) -> Any: ...\n")
    return folder / "typings"


def check_with_mypy(folder: Path) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    call += ["--cache-dir", ROOT / ".mypy_cache", *folder.glob("*.py")]
    paths = os.pathsep.join(map(str, (write_stubs(folder), SOURCE)))
    # tensor.backward is not typed in torch itself; Lightning's module is not judged here
    call += ["--untyped-calls-exclude", "torch", "--allow-subclassing-any"]
    environment = os.environ | {"MYPYPATH": paths}
    return subprocess.run(call, capture_output=True, text=True, cwd=folder, env=environment)


def check_with_pyright(folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        "include": ["*.py"],
        "extraPaths": [str(SOURCE)],
        "stubPath": str(write_stubs(folder)),
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    call = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", folder]
    return subprocess.run(call, capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("check", [check_with_mypy, check_with_pyright])
def test_every_recipe_and_every_public_name_type_checks_and_a_wrong_one_does_not(check, written):
    """One run for all: a type checker takes half a minute to read torch."""
    done = check(written)
    lines = done.stdout.splitlines()
    errors = [line for line in lines if "error:" in line]
    assert [line for line in errors if "wrong.py" not in line] == []
    assert any("dimension" in line for line in errors), done.stdout + done.stderr
    assert any("difuse" in line for line in errors)
    types = [line for line in lines if re.search(r"Revealed type is|Type of", line)]
    assert len(types) == len(dp.__all__)
    unknown = re.compile(r'is "(Any|object|Unknown|Module)"')
    assert [line for line in types if unknown.search(line)] == []

"""The map holds: a folder imports only from folders above it, a file only files above it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "depthpde"
OPEN_TO_ALL = {"config", "errors", "files", "shapes", "seeds", "threads"}
PAGE = SOURCE.parents[1] / "docs" / "architecture.md"


def read_map() -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Read the map: which folders each folder may import, and the order of its files."""
    block = PAGE.read_text().split("## The map")[1].split("```")[1]
    folders: dict[str, set[str]] = {}
    files: dict[str, list[str]] = {}
    for line in block.strip().splitlines():
        if not line.startswith(" "):
            folder = line.split("/ ")[0].rstrip("/")
            folders[folder] = set(line.split("←")[1].split())
            files[folder] = []
            continue
        for word in line.split():
            if not word.endswith((".py", "/")):
                break
            files[folder].append(word.removesuffix(".py").rstrip("/"))
    return folders, files


FOLDERS, FILES = read_map()

NOT_NOUNS = {"utils", "helpers", "common", "misc", "base", "v2"}


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Name the modules of the package that a file imports, without the package's own name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] != "depthpde":
                continue
            inside = node.module.removeprefix("depthpde").lstrip(".")
            names = [alias.name for alias in node.names]
            is_folder = (SOURCE / inside.replace(".", "/")).is_dir()
            found |= {f"{inside}.{name}".lstrip(".") for name in names} if is_folder else {inside}
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {n.removeprefix("depthpde.") for n in names if n.startswith("depthpde.")}
    return found


def home(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_folder_imports_only_what_the_map_allows(path):
    if path.parent == SOURCE:
        return
    allowed = FOLDERS[home(path)] | OPEN_TO_ALL | {home(path), "__version__"}
    for module in imports(path):
        parts = module.split(".")
        above = {".".join(parts[: k + 1]) for k in range(len(parts))}
        assert above & allowed, f"{home(path)} must not import {module}"


@pytest.mark.parametrize("folder", FILES)
def test_a_file_imports_only_files_above_it(folder):
    order = FILES[folder]
    names = {p.stem for p in (SOURCE / folder).glob("*.py")} - {"__init__"}
    names |= {p.parent.name for p in (SOURCE / folder).glob("*/__init__.py")}
    assert names == set(order), "docs/architecture.md must name every file of the folder"
    prefix = folder.replace("/", ".") + "."
    for name in order:
        files = (SOURCE / folder / name).rglob("*.py")
        for path in [*files, SOURCE / folder / f"{name}.py"]:
            if not path.exists():
                continue
            for module in imports(path):
                if module.startswith(prefix):
                    other = module.removeprefix(prefix).split(".")[0]
                    assert order.index(other) <= order.index(name), f"{path.name} → {other}"


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_file_holds_one_idea(path):
    assert path.stem not in NOT_NOUNS
    assert len(path.read_text().splitlines()) <= 400


def test_the_rule_itself_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from depthpde.models.block import Block\nimport depthpde.theory.claim\n")
    assert imports(bad) == {"models.block", "theory.claim"}
    assert not imports(bad) <= FOLDERS["operators"]


def test_every_test_folder_mirrors_a_source_folder():
    tests = Path(__file__).parent
    for folder in (p for p in tests.rglob("*") if p.is_dir() and any(p.glob("test_*.py"))):
        assert (SOURCE / folder.relative_to(tests)).is_dir(), folder


def test_the_map_names_every_folder():
    there = {p.parent.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("__init__.py")} - {"."}
    assert there == set(FOLDERS)


@pytest.mark.parametrize("folder", FILES)
def test_a_folder_holds_at_most_eighteen_files(folder):
    assert len(list((SOURCE / folder).glob("*.py"))) <= 18


WALKS = PAGE.read_text().split("## Four walks")[1].split("\n## ")[0].split("\n**")[1:]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split("**")[0])
def test_a_walk_has_at_most_eight_hops_and_every_hop_exists(walk):
    hops = re.findall(r"^\d\. `([\w/]+\.py):(\w+)`", walk, re.M)
    assert 1 < len(hops) <= 8
    assert len(hops) == len(re.findall(r"^\d", walk, re.M)), "a hop is `file.py:name`"
    for file, name in hops:
        tree = ast.parse((SOURCE / file).read_text())
        known = {getattr(node, "name", None) for node in tree.body}
        known |= {
            each.id
            for node in tree.body
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        assert name in known, f"{file} must have {name}; tell the walk where it went"


def test_the_four_walks_are_there():
    assert [walk.split("**")[0] for walk in WALKS] == ["train", "reproduce", "insert", "diagnose"]

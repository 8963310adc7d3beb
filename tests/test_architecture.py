"""The map holds: what a folder imports and reads, what a file is called, and what tests it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "depthpde"
OPEN_TO_ALL = {"config", "errors", "files", "locks", "notebook", "shapes", "seeds", "threads"}
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


@cache
def parsed(text: str) -> ast.Module:
    """Parse a file's text once for all tests."""
    return ast.parse(text)


def python_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Name the modules of the package that a file imports, without the package's own name."""
    found = set()
    for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
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


def literal_folders(path: Path, source: Path = SOURCE) -> set[str]:
    """Name the folders of the package that a file names in a string, as to read their files."""
    names = {
        node.value.removeprefix("depthpde.").replace(".", "/")
        for node in ast.walk(parsed(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"depthpde(\.\w+)+", node.value)
    }
    return {name for name in names if (source / name).is_dir()}


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_folder_reads_only_its_own_resources(path):
    own = path.parent.relative_to(SOURCE).as_posix()
    assert literal_folders(path) <= {own}, "move the file to the folder that reads it"


def test_a_resource_read_across_folders_is_seen(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text('files("depthpde.theory") / "page.css"\nrun("-m", "depthpde.sweeps.worker")\n')
    assert literal_folders(bad) == {"theory"}


def templates_used(path: Path) -> set[str]:
    """Name the templates that a template builds on."""
    pattern = r"{%-?\s*(?:extends|from|import|include)\s+[\"']([^\"']+)"
    return set(re.findall(pattern, path.read_text(encoding="utf-8")))


def lost_templates(source: Path) -> set[str]:
    """Name the templates whose parts lie neither in their own folder nor in ``pages``."""
    shared = {path.name for path in (source / "pages" / "templates").glob("*")}
    return {
        f"{path.relative_to(source)}: {name}"
        for path in source.glob("*/templates/*.html")
        for name in templates_used(path) - {each.name for each in path.parent.iterdir()} - shared
    }


def test_a_template_builds_on_its_own_folder_or_on_what_all_pages_share():
    assert lost_templates(SOURCE) == set()
    users = {path.parents[1].name for path in SOURCE.glob("*/templates/*.html")} - {"pages"}
    assert users
    assert all("pages" in FOLDERS[folder] for folder in users)


def test_a_template_taken_from_another_folder_is_seen(tmp_path):
    for folder, text in (
        ("web", "{% extends 'mine.html' %}"),
        ("report", "{% include 'x.html' %}"),
    ):
        (tmp_path / folder / "templates").mkdir(parents=True)
        (tmp_path / folder / "templates" / "page.html").write_text(text)
    (tmp_path / "web" / "templates" / "mine.html").write_text("")
    (tmp_path / "web" / "templates" / "x.html").write_text("")
    assert lost_templates(tmp_path) == {"report/templates/page.html: x.html"}


def unused_resources(source: Path) -> set[str]:
    """Name the style sheets, scripts and templates that nothing in their folder or above names."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in source.rglob("*")
        if path.suffix in (".py", ".html", ".js")
    }
    return {
        each.relative_to(source).as_posix()
        for each in [*source.glob("*/static/*"), *source.glob("*/templates/*")]
        if not any(each.name in text for path, text in texts.items() if path != each)
    }


def test_every_resource_is_read_by_somebody():
    assert unused_resources(SOURCE) == set()


def test_a_resource_that_nobody_reads_is_seen(tmp_path):
    (tmp_path / "web" / "static").mkdir(parents=True)
    for name in ("used.js", "left.css"):
        (tmp_path / "web" / "static" / name).write_text("")
    (tmp_path / "web" / "pages.py").write_text('read("used.js")')
    assert unused_resources(tmp_path) == {"web/static/left.css"}


def import_graph() -> dict[str, set[str]]:
    """Return folder → folders that its files import or that the map lets them import."""
    graph = {name: allowed - {name} for name, allowed in FOLDERS.items() if "/" not in name}
    for path in python_files():
        if path.parent != SOURCE:
            others = {module.split(".")[0] for module in imports(path)} - {home(path)}
            graph[home(path)] = graph[home(path)] | others
    return graph


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return a way from a folder back to itself, or nothing."""

    def walk(way: list[str]) -> list[str]:
        for other in sorted(graph.get(way[-1], ())):
            if other in way:
                return [*way[way.index(other) :], other]
            found = walk([*way, other]) if other not in done else []
            if found:
                return found
        done.add(way[-1])
        return []

    done: set[str] = set()
    return next((found for name in sorted(graph) if (found := walk([name]))), [])


def test_no_folder_leads_back_to_itself():
    assert cycle(import_graph()) == []


def test_a_cycle_between_folders_is_seen():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": set()}
    assert cycle(graph) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def class_names(source: Path) -> dict[str, list[str]]:
    """Return public class → the files that define one of that name."""
    found: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        for node in parsed(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(source).as_posix())
    return found


def test_no_public_class_name_exists_twice():
    twice = {name: where for name, where in class_names(SOURCE).items() if len(where) > 1}
    assert twice == {}


def test_a_class_name_that_exists_twice_is_seen(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("class Plan: ...\nclass _Own: ...\n")
    assert class_names(tmp_path) == {"Plan": ["a.py", "b.py"]}


MOST_FILES = 18
"""In one folder, `__init__` included: past it a folder holds two products."""


def crowded(source: Path) -> dict[str, int]:
    """Return the folders that hold too many files."""
    counts: dict[str, int] = {}
    for path in source.rglob("*.py"):
        folder = path.parent.relative_to(source).as_posix()
        counts[folder] = counts.get(folder, 0) + 1
    return {folder: count for folder, count in counts.items() if count > MOST_FILES}


def test_no_folder_holds_two_products():
    assert crowded(SOURCE) == {}


def test_a_crowded_folder_is_seen(tmp_path):
    for folder, count in (("full", MOST_FILES), ("over", MOST_FILES + 1)):
        (tmp_path / folder).mkdir()
        for k in range(count):
            (tmp_path / folder / f"file{k}.py").write_text("")
    assert crowded(tmp_path) == {"over": MOST_FILES + 1}


def test_every_test_folder_mirrors_a_source_folder():
    tests = Path(__file__).parent
    drills = tests / "drills"  # try the whole from outside, not one source
    folders = (p for p in tests.rglob("*") if p.is_dir() and any(p.glob("test_*.py")))
    for folder in (each for each in folders if each != drills):
        assert (SOURCE / folder.relative_to(tests)).is_dir(), folder


def test_the_map_names_every_folder():
    there = {p.parent.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("__init__.py")} - {"."}
    assert there == set(FOLDERS)


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

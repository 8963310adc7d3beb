"""The site holds every page and every public name; dead links and lost names end its build."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import depthpde as dp

ROOT = Path(__file__).parents[1]


def tool(name: str) -> ModuleType:
    """Import a file of tools/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = tool("build_site")
STUB = (ROOT / site.STUB).read_text()


def in_navigation(entries: list[object]) -> set[str]:
    found: set[str] = set()
    for each in entries:
        values = each.values() if isinstance(each, dict) else [each]
        for value in values:
            found |= {value} if isinstance(value, str) else in_navigation(value)
    return found


def test_the_navigation_names_every_page_and_no_other():
    config = tomllib.loads((ROOT / "zensical.toml").read_text())
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    made = {f"api/{name}" for name in site.api_pages(STUB)}
    assert in_navigation(config["project"]["nav"]) == written | made


def test_the_reference_holds_every_public_name_once():
    pages = [text for name, text in site.api_pages(STUB).items() if name != "index.md"]
    names = re.findall(r"^::: depthpde\.(\w+)$", "\n".join(pages), re.M)
    assert sorted(names) == sorted(set(dp.__all__) - {"__version__"})


def test_a_name_from_a_folder_without_a_page_ends_the_build():
    with pytest.raises(SystemExit, match=r"attic.*API"):
        site.api_pages(f"{STUB}\nfrom depthpde.attic.box import Box as Box\n")


def test_a_dead_link_ends_the_build():
    with pytest.raises(SystemExit, match=r"nowhere\.md in docs/page\.md"):
        site.bring_linked("see [this](../nowhere.md)", "page.md")


def test_a_link_to_a_folder_ends_the_build():
    with pytest.raises(SystemExit, match=r"files, got \.\./src in docs/page\.md"):
        site.bring_linked("see [this](../src)", "page.md")


def test_a_linked_file_is_laid_beside_the_pages(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "PAGES", tmp_path)
    text = site.bring_linked("[a](../LICENSE) [b](../SECURITY.md#x) [c](data.md)", "page.md")
    assert text == "[a](repository/LICENSE) [b](repository/SECURITY.md#x) [c](data.md)"
    assert (tmp_path / "repository" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_formulas_become_mathml_and_code_stays():
    pytest.importorskip("latex2mathml")
    text = site.to_mathml("$$r \\le 1$$\n$u_i$ costs `$5` or\n```sh\necho $HOME $USER\n```\n")
    assert text.count("<math") == 2
    assert not re.search(r"^<math", text, re.M), "Markdown ends a paragraph there"
    assert 'display="block"' in text
    assert "`$5`" in text
    assert "echo $HOME $USER" in text


def test_an_index_in_plain_text_is_no_link():
    pytest.importorskip("latex2mathml")
    assert site.to_mathml("x['a']['b'] `x['a']`") == "x\\['a']\\['b'] `x['a']`"


def test_examples_of_docstrings_become_code_blocks():
    pytest.importorskip("griffe")
    fence = tool("doctest_blocks").fence
    assert fence("Say.\n\n>>> 1 + 1\n2\n\nEnd.") == "Say.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nEnd."
    assert fence("no example") == "no example"
    assert fence("Say.\n\n    >>> 1\n    1\n") == "Say.\n\n```pycon\n>>> 1\n1\n```\n"
    section = "Say.\n\nExample:\n    >>> 1\n    1\n"
    assert fence(section) == "Say.\n\nExample:\n    ```pycon\n    >>> 1\n    1\n    ```\n"


READ = re.compile(r"os\.environ(?:\.get\(|\.setdefault\(|\[)\s*(\"\w+\"|[A-Z]+)")


def test_every_variable_that_the_sources_read_is_listed():
    page = (ROOT / "docs" / "environment.md").read_text()
    named = {"ENVIRONMENT": "DEPTHPDE_DATA"}
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        found |= {named.get(each, each).strip('"') for each in READ.findall(text)}
        found |= set(re.findall(r"\"(\w+)\" (?:not )?in os\.environ", text))
    assert {"DEPTHPDE_DATA", "NO_COLOR", "WORLD_SIZE"} <= found
    assert [name for name in sorted(found) if f"`{name}`" not in page] == []

"""One environment for all templates: everything is escaped, nothing may be missing."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from depthpde import __version__
from depthpde.pages.style import csp_hash, style_sheet
from depthpde.pages.templates import instrument_script, make_environment, render_document

SOURCE = Path(__file__).parents[2] / "src" / "depthpde"
FOLDERS = [
    ".".join(path.parent.relative_to(SOURCE).parts) for path in sorted(SOURCE.rglob("templates"))
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the name of a package with a template of its own."""
    templates = tmp_path / "stranger" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "__init__.py").write_text("")
    (templates / "own.html").write_text(
        '{% extends "document.html" %}{% block title %}{{ name }}{% endblock %}'
        "{% block body %}<p>{{ words }}</p>{% endblock %}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "stranger"


def test_every_folder_with_templates_is_seen():
    assert {"pages", "report", "theory", "doctor.pages", "web"} <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_template_compiles_and_none_turns_escaping_off(name):
    environment = make_environment(f"depthpde.{name}")
    for template in environment.list_templates():
        environment.get_template(template)
    for path in SOURCE.joinpath(*name.split("."), "templates").iterdir():
        assert not re.search(r"autoescape|\|\s*e\b", path.read_text(encoding="utf-8")), path


def test_text_is_escaped_and_markup_is_not(folder):
    page = render_document(folder, "own.html", name="<b>", words=Markup("<i>ours</i>"))
    assert "<title>&lt;b&gt;</title>" in page
    assert "<p><i>ours</i></p>" in page


def test_a_value_that_is_missing_is_an_error(folder):
    with pytest.raises(UndefinedError, match="'words' is undefined"):
        render_document(folder, "own.html", name="x")


def test_a_page_without_a_script_allows_none(folder):
    page = render_document(folder, "own.html", name="x", words="y")
    assert "script" not in page
    assert "default-src 'none'" in page
    assert f"style-src '{csp_hash(style_sheet())}'" in page
    assert f'content="depthpde {__version__}"' in page


def test_the_policy_names_the_sheet_and_the_script_that_stand_in_the_page(folder):
    page = render_document(
        folder, "own.html", style="p { margin: 0 }", script="let a = 1 < 2;", name="x", words="y"
    )
    style = re.search(r"<style>(.*?)</style>", page, flags=re.S)[1]
    script = re.search(r'<script type="module">(.*?)</script>', page, flags=re.S)[1]
    assert script == "let a = 1 < 2;"
    assert style.endswith("p { margin: 0 }")
    for text in (style, script):
        assert f"'{csp_hash(text)}'" in page


def test_the_instrument_starts_itself():
    script = instrument_script()
    assert script.rstrip().endswith('instrument(document.getElementById("instrument"));')
    assert "</script" not in script

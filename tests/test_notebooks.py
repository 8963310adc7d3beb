"""Every notebook of examples/notebooks runs from top to bottom in a real kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "examples" / "notebooks").glob("*.py"))}
SHOWS = {
    "equation": ("image/png", "network and equation differ by"),
    "first_look": ("image/png", "parameters added"),
    "your_data": ("text/html", "4 of 4 recorded"),
}
"""What each must show: a kind of output, and a text."""


def outputs_of(notebook: Any) -> list[tuple[str, str]]:
    """Return every output as its kind and its text."""
    found = []
    for cell in notebook.cells:
        for each in cell.get("outputs", ()):
            data = {"text/plain": each["text"]} if "text" in each else each.get("data", {})
            found += [(kind, str(text)) for kind, text in data.items()]
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[] if each == "first_look" else [pytest.mark.drill])
        for each in sorted(NOTEBOOKS)
    ],
)
def test_a_notebook_runs_in_a_kernel(name, tmp_path, monkeypatch):
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = jupytext.read(NOTEBOOKS[name])
    client = nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()  # raises at the first cell that does
    kind, text = SHOWS[name]
    shown = outputs_of(notebook)
    assert any(each == kind for each, _ in shown)
    assert any(text in each for _, each in shown), shown


def test_there_are_three_and_the_gallery_names_each():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert set(NOTEBOOKS) == set(SHOWS)
    for name, path in NOTEBOOKS.items():
        assert f"](../examples/notebooks/{name}.py)" in page
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(from|import) depthpde\.", text)

"""Every script of examples/ runs in its small form, leaves its picture, stands in the gallery."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
SAYS = {
    "audit_model": "Smoother",
    "char_gpt": "upwind diffusion: loss",
    "clustering": "two clusters",
    "operators": "upwind",
    "ray_sweep": "2 runs recorded, 0 failed",
    "text_classification": "64 parameters added",
    "time_series": "diffusion",
    "vit_2d": "plane: test accuracy",
}
"""What each prints in its small form."""
LONGEST = 60
DRILLS = {"char_gpt", "ray_sweep", "time_series"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[pytest.mark.drill] if each in DRILLS else [])
        for each in sorted(SCRIPTS)
    ],
)
def test_a_script_runs_and_leaves_its_picture(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    runpy.run_path(str(SCRIPTS[name]), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out
    left = [path for path in (tmp_path / "out" / "gallery").iterdir() if path.is_file()]
    assert [path.stem for path in left] == [name]
    assert left[0].stat().st_size > 5_000


def test_there_are_eight_short_scripts_of_public_names():
    assert set(SCRIPTS) == set(SAYS)
    for path in SCRIPTS.values():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= LONGEST, path.name
        assert not re.search(r"(from|import) depthpde\.", text), path.name


def test_the_gallery_shows_every_script_with_its_picture():
    for name in SCRIPTS:
        assert f"](../examples/{name}.py)" in PAGE
        picture = ROOT / "docs" / "img" / f"gallery-{name}.png"
        assert f"](img/{picture.name})" in PAGE
        assert picture.is_file()
        assert picture.stat().st_size < 150_000


@pytest.mark.parametrize("name", ["cylinder", "files"])
def test_series_are_read_from_files_as_the_archive_has_them(name, tmp_path):
    names = runpy.run_path(str(SCRIPTS["time_series"]))
    if name == "cylinder":
        x, y = names["make_series"](30)
        assert x.shape == (30, 128)
        assert sorted(set(y)) == [0, 1, 2]
        return
    (tmp_path / "A.tsv").write_text("1\t0.5\t0.25\n2\t-1\t1\n")
    x, y = names["read_ucr"](str(tmp_path / "A.tsv"))
    assert y.tolist() == [1, 2]
    assert x.tolist() == [[0.5, 0.25], [-1.0, 1.0]]

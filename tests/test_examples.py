"""Every public class and function has a short example in its docstring, and it runs."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import depthpde as dp
from depthpde.records.record import read_grid
from recipes import ROOT

WITHOUT = {
    "__version__": "a string",
    "tasks": "a table; its docstring is that of NameTable",
    "presets": "a table",
    "Executor": "a protocol",
    "RayCluster": "connects to a cluster; tests/sweeps/clusters/test_ray_cluster.py starts one",
    "Slurm": "submits jobs; tests/sweeps/clusters/test_slurm.py",
}
GRID = "decoder-longer"
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
LONGEST = 5


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a few prepared examples of one task and the records of one grid."""
    place = tmp_path_factory.mktemp("examples")
    small = replace(dp.tasks["listops-mini"], splits={"train": 32, "validation": 16, "test": 16})
    dp.prepare(small, out=place / "depthpde" / "data")
    (place / "results" / "grids").mkdir(parents=True)
    (place / "results" / "runs").mkdir()
    grid = ROOT / "results" / "grids" / f"{GRID}.json"
    (place / "results" / "grids" / grid.name).symlink_to(grid)
    for cell in read_grid(grid).cells:
        (place / "results" / "runs" / cell.run).symlink_to(ROOT / "results" / "runs" / cell.run)
    (place / "examples").symlink_to(ROOT / "examples")
    return place


def example(name: str) -> doctest.DocTest:
    names = {"dp": dp, "torch": torch, "Path": Path}
    text = getattr(dp, name).__doc__ or ""
    return doctest.DocTestParser().get_doctest(text, names, name, None, 0)


@pytest.mark.parametrize("name", sorted(set(dp.__all__) - set(WITHOUT)))
def test_the_example_of_a_public_name_runs(name, place, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    monkeypatch.chdir(place)
    test = example(name)
    assert 1 <= len(test.examples) <= LONGEST
    assert any(f"dp.{name}" in each.source for each in test.examples) or name in INDIRECT
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=printed.append)
    assert not printed, "".join(printed)


INDIRECT = {
    "BlowUpError": "raised",
    "ComparisonReport": "returned by compare",
    "DepthProfile": "returned by probe",
    "Diagnosis": "returned by diagnose",
    "DiagnosisComparison": "returned by compare_diagnoses",
    "Evidence": "returned by gather",
    "History": "returned by train",
    "Insertion": "returned by insert",
    "Preset": "returned by preset",
    "Results": "returned by read_results",
    "Split": "returned by load",
    "Task": "taken from the table of tasks",
    "Trajectory": "returned by simulate",
}


def test_a_wrong_example_would_be_found():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3", {}, "wrong", None, 0)
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=printed.append)
    assert printed

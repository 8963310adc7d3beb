"""One results folder for all tests of the report; a test that changes it takes a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from depthpde.records.evidence import Evidence, gather
from depthpde.records.results import read_results
from report import synthesis

TASKS = ("listops-mini", "text-mini")
VARIANTS = ("baseline", "after_embedding", "after_attention", "depthwise conv", "all seven")


@pytest.fixture(scope="session")
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two tasks, five variants and six seeds; not to be changed."""
    folder = tmp_path_factory.mktemp("results")
    grid = synthesis.write_placement(folder, tasks=TASKS, variants=VARIANTS)
    for cell in grid.cells:
        if cell.variant in ("baseline", "after_embedding"):
            tilt = 1.0 if cell.variant == "baseline" else 0.6
            synthesis.write_probe(folder, cell.run, tilt=tilt)
    synthesis.write_findings(folder)
    return folder


@pytest.fixture
def results(shared_results: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, free to be changed."""
    return Path(shutil.copytree(shared_results, tmp_path / "results"))


@pytest.fixture(scope="session")
def evidence(shared_results: Path) -> Evidence:
    """Return what the runs of that folder show."""
    found = read_results(shared_results)
    return gather(found.grids["placement"], found.records)

"""The committed records, read once; and the results folder of the tests of `report`."""

from __future__ import annotations

from pathlib import Path

import pytest

from depthpde.records.evidence import gather
from depthpde.records.record import read_grids, read_records
from report.conftest import evidence, results, shared_results

__all__ = ["evidence", "results", "shared_results"]

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="session")
def committed():
    """Return the committed grids and records."""
    return read_grids(RESULTS).by_name, read_records(RESULTS).found


@pytest.fixture(scope="session")
def gathered(committed):
    """Return the evidence of every committed grid, by its name."""
    grids, records = committed
    return {name: gather(grid, records) for name, grid in grids.items()}

"""Experiments are tested on the same small task as single runs, and on the report's records."""

import pytest

from depthpde.sweeps.compute import compute
from depthpde.sweeps.executor import Folders, InProcess
from papers.tiny import tiny_plan
from report.conftest import evidence, shared_results
from runs.conftest import prepared

__all__ = ["evidence", "prepared", "shared_results"]


@pytest.fixture(scope="session")
def folders(tmp_path_factory, prepared):
    """Return a results folder with all eight variants of one seed; not to be changed."""
    made = Folders(tmp_path_factory.mktemp("results"), None, prepared)
    assert compute(tiny_plan(), InProcess(made)).recorded == 8
    return made

"""Costs end in a claim; every variant and length is measured."""

from __future__ import annotations

import pytest
import torch

from depthpde.papers.efficiency import EXPERIMENT
from depthpde.papers.reproduce import reproduce, stored_findings
from depthpde.sweeps.executor import Folders
from depthpde.sweeps.scale import Scale


@pytest.mark.drill
def test_the_findings_are_written_with_every_variant_and_length(tmp_path):
    torch.manual_seed(0)
    lines: list[str] = []
    folders = Folders(tmp_path)
    found = reproduce(EXPERIMENT, folders, scale=Scale.QUICK, seeds=1, log=lines.append).findings
    assert stored_findings(EXPERIMENT, tmp_path) == found
    (rows,) = found.tables.values()
    assert len(rows) == len(lines) == 11
    assert found.claims[0].finding.startswith("at most ")
    assert "(after embedding, length " in found.claims[0].finding


def test_refuses_no_rounds(tmp_path):
    with pytest.raises(ValueError, match=r"`seeds`.*1.*got -1"):
        reproduce(EXPERIMENT, Folders(tmp_path), scale=Scale.QUICK, seeds=-1)

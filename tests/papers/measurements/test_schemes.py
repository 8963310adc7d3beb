"""Roughness is that of the real tokens."""

import dataclasses

import pytest

from depthpde.data.catalog import load
from depthpde.papers.measurements.observation import first_batch
from depthpde.papers.measurements.schemes import roughening
from papers.tiny import tiny_plan


def test_padding_adds_no_roughness(prepared):
    batch = first_batch(load("listops-mini", "test", out=prepared), 1)
    length = int(batch.valid_mask.sum())
    bare, padded = (
        dataclasses.replace(
            batch, tokens=batch.tokens[:, :end], valid_mask=batch.valid_mask[:, :end]
        )
        for end in (length, None)
    )
    assert padded.tokens.shape[1] > length
    model = tiny_plan().runs[0].build().double().eval()
    found = roughening(model, padded, 2.0)
    assert found == pytest.approx(roughening(model, bare, 2.0), rel=1e-9)

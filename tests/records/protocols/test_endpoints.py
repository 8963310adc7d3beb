"""Whatever a protocol tests can be judged by what records hold."""

from __future__ import annotations

from depthpde.papers.registry import EXPERIMENTS
from depthpde.records.protocols.endpoints import ENDPOINTS, READINGS


def test_every_experiment_asks_for_endpoints_that_can_be_judged_and_each_is_asked_for():
    used = {
        endpoint
        for each in EXPERIMENTS.values()
        if each.protocol is not None
        for endpoint in each.protocol.endpoints
    }
    assert used == set(ENDPOINTS)
    assert set(READINGS) < used

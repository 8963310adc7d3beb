"""The results folder of the tests of `report`."""

from report.conftest import evidence, results, shared_results

__all__ = ["evidence", "results", "shared_results"]

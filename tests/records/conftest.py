"""The readers of records are tested on the same results folder as the report."""

from report.conftest import evidence, results, shared_results

__all__ = ["evidence", "results", "shared_results"]

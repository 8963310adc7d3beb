"""The small task and the short run of the tests of `runs`."""

from runs.conftest import prepared, run

__all__ = ["prepared", "run"]

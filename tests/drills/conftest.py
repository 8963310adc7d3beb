"""Drills are made on the same small task as single runs."""

from runs.conftest import prepared, run

__all__ = ["prepared", "run"]

"""Experiments are tested on the same small task as single runs."""

from runs.conftest import prepared

__all__ = ["prepared"]

"""What a protocol's tests can be about: numbers that records hold."""

from __future__ import annotations

from collections.abc import Mapping

ACCURACY, ESCAPE, CORRUPTED = "accuracy", "escape", "accuracy under noise"
"""Test accuracy in percent over tasks; updates until a plateau is left; test accuracy where noise
has taken half of what the baseline knows."""
READINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "accuracy in a window of 8": ("windowed", ("8",)),
    "accuracy in shuffled blocks of 16": ("shuffled", ("16",)),
    "accuracy at length 1024": ("transferred", ("text/1024",)),
    "accuracy at twice the resolution": ("transferred", ("mnist", "image")),
}
"""More endpoints: what the record calls a further reading of the test split, and which of its
levels; a task has one of them."""
ENDPOINTS = (ACCURACY, ESCAPE, CORRUPTED, *READINGS)
"""All of them; no other can be judged."""

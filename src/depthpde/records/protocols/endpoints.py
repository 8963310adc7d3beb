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
LARGEST_GRADIENT = "decades of the largest gradient"
COSINE_TO_INPUT = "cosine to the input"
SIGNS = (LARGEST_GRADIENT, COSINE_TO_INPUT)
"""What tells that a network lacks a stabilizer: log₁₀ of the largest gradient norm of a training;
the cosine of the last block's field with the first. Neither is in points."""
GATED = (ACCURACY,)
"""What a gate can be about: what a run reaches on validation examples."""
ENDPOINTS = (ACCURACY, ESCAPE, CORRUPTED, *READINGS, *SIGNS)
"""All of them; no other can be judged."""

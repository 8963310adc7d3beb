"""Presets: named runs with complete settings, one for each task they speak of."""

from __future__ import annotations

from dataclasses import dataclass

from depthpde.errors import check_name
from depthpde.models.config import ModelConfig
from depthpde.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """How one task is run."""

    model: ModelConfig
    """The model; what the task knows (vocabulary, length, classes, grid) is left open."""
    training: TrainingConfig
    """How it is trained."""
    notes: tuple[str, ...] = ()
    """In words: what the source did and this does not."""


def preset(name: str, task: str) -> Preset:
    """Return a preset's settings for a task, or say which there are and the nearest one.

    Args:
        name: ``mini``, or the source whose settings are repeated.
        task: The task's name.
    """
    known = PRESETS[check_name("preset", name, PRESETS)]
    if task not in known:
        raise ValueError(
            f"`preset` {name!r} must be of a task it knows, got {task!r}; it knows "
            f"{', '.join(known)}; use another preset"
        )
    return known[task]


def _mini(*, learning_rate: float = 2e-3, updates: int = 800, warmup: int = 80) -> Preset:
    """Return a run of at most two minutes on one core."""
    return Preset(
        model=ModelConfig(dim=32, blocks=2, heads=2),
        training=TrainingConfig(
            updates=updates, learning_rate=learning_rate, warmup=warmup, evaluate_every=200
        ),
    )


MINI = {
    "listops-mini": _mini(),
    "text-mini": _mini(),
    "retrieval-mini": _mini(updates=400, warmup=40),
    "image-mini": _mini(),
    "pathfinder-mini": _mini(),
    "mnist-mini": _mini(),
    "newsgroups-mini": _mini(),
    "wikitext2-mini": _mini(updates=600),
    "enwik8-mini": _mini(updates=600),
}
"""Small models for small tasks, for a CPU; never to be reported as the tasks themselves."""

PRESETS: dict[str, dict[str, Preset]] = {"mini": MINI}
"""Every preset: its tasks, and how each is run."""

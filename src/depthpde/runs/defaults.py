"""Sizes and rates for a task that nobody has tuned: they follow from the task's own sizes.

batch    32, or 16 where sequences are longer than 256
updates  30 epochs, within 200 … 1,500 and ten million sites in all
model    two blocks of 64 features and four heads; dropout where examples are few
"""

from __future__ import annotations

from typing import Any

from depthpde.data.task import Task, TaskKind
from depthpde.models.config import ModelConfig
from depthpde.runs.presets import Preset
from depthpde.training.config import TrainingConfig

SITES = 10_000_000
"""Sites of a whole run: a few minutes on one core."""
PATCHES = 256
"""Most patches of an image: attention costs their square."""


def defaults(task: Task) -> Preset:
    """Return settings for a task of one's own.

    >>> from depthpde.runs.defaults import defaults
    >>> defaults(dp.Task.from_text("abc", "abc" * 2000, window=32)).training.batch_size
    32

    Args:
        task: Read for its kind, length, channels, grid and number of examples.
    """
    batch = 32 if task.length <= 256 else 16
    examples = task.splits.get("train", 1)
    if task.kind is TaskKind.LANGUAGE:
        examples //= task.length
    most = max(100, SITES // (batch * task.length))
    updates = min(max(200, 30 * examples // batch), 1500, most)
    return Preset(
        model=ModelConfig(
            dim=64,
            blocks=2,
            heads=4,
            hidden=128,
            dropout=0.1 if examples < 5000 else 0.0,
            **_input(task),
        ),
        training=TrainingConfig(
            updates=updates,
            batch_size=batch,
            learning_rate=1e-3,
            warmup=updates // 10,
            evaluate_every=max(1, updates // 5),
            log_every=max(1, updates // 20),
        ),
    )


def _input(task: Task) -> dict[str, Any]:
    """Return how a task comes in: tokens, numbers site by site, or patches of an image."""
    if task.channels is None:
        return {}
    patch = _patch(task.grid)
    return {"input": "linear"} if patch is None else {"input": "patch", "patch": patch}


def _patch(grid: tuple[int, int] | None) -> int | None:
    """Return the smallest side of square patches that leaves few enough; None for no image."""
    if grid is None:
        return None
    rows, columns = grid
    sides = (side for side in range(2, min(grid) + 1) if not rows % side and not columns % side)
    return next((side for side in sides if rows * columns <= PATCHES * side**2), None)

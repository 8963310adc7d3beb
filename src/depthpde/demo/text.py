"""A small byte-level GPT on a text that every Python carries: three models, paired by seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from depthpde.data.catalog import prepare
from depthpde.data.task import Task
from depthpde.models.config import ModelConfig
from depthpde.runs.presets import Preset
from depthpde.sweeps.grid import Plan, Variant
from depthpde.training.config import TrainingConfig

NAME = "demo"
TASK = "python-reference"
UPDATES = 120
SEEDS = 7
"""The fewest pairs that can carry a verdict on two variants."""
WINDOW = 128
PLAIN, OURS, CONTROL = "plain", "upwind diffusion", "free convolution"


def make_task() -> Task:
    """Return the language reference of this Python as a task; 0.46 MB of English in 3.11."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    return Task.from_text(TASK, text, window=WINDOW)


def plan(results: Path, *, seeds: int | Sequence[int] = SEEDS, updates: int = UPDATES) -> Plan:
    """Return the runs of the demo; the text is prepared inside the results folder.

    Args:
        results: The results folder.
        seeds: How many, counted from 1, or which.
        updates: Of every run.
    """
    task = make_task()
    place = prepare(task, out=results / "tasks").resolve()
    here = {"positions": ("between_blocks",)}
    upwind = {"kind": "diffusion", "scheme": "upwind", "bound": 1.0, "initial_ratio": 0.3}
    return Plan(
        name=NAME,
        question="Does a small GPT learn faster with upwind diffusion after every block?",
        variants=(
            Variant(PLAIN, "two blocks, nothing added"),
            Variant(
                OURS,
                "after every block each feature moves a learned share towards the byte before",
                model=here | {"layer": upwind},
            ),
            Variant(
                CONTROL,
                "the control: after every block a causal convolution of three free weights a "
                "feature",
                model=here | {"layer": {"kind": "depthwise_conv"}},
            ),
        ),
        bases={
            TASK: Preset(
                model=ModelConfig(dim=64, blocks=2, heads=4, hidden=128),
                training=TrainingConfig(
                    updates=updates,
                    batch_size=16,
                    learning_rate=8e-3,
                    warmup=max(1, updates // 10),
                    evaluate_every=max(1, updates // 3),
                    log_every=max(1, updates // 3),
                    checkpoint_every=updates,
                ),
                source=str(place),
            )
        },
        # its settings were tried out on seed 0, which therefore judges nothing
        seeds=range(1, seeds + 1) if isinstance(seeds, int) else seeds,
    )

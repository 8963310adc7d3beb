"""Presets: named runs with complete settings, one for each task they speak of.

A preset repeats the hyper-parameters of its source, not its data: those are chosen by
`protocol`, and every preset may be run under ``strict``. What the source did and this package
cannot say stands in the notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from depthpde.data.tasks import TASKS
from depthpde.errors import check_name
from depthpde.models.config import ModelConfig
from depthpde.training.config import TrainingConfig
from depthpde.training.pretraining import PretrainingConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """How one task is run.

    >>> dp.preset("mini", "listops-mini").model.blocks
    2
    """

    model: ModelConfig
    """The model; what the task knows (vocabulary, length, classes, grid) is left open."""
    training: TrainingConfig
    """How it is trained."""
    pretraining: PretrainingConfig | None = None
    """What comes before that, if anything."""
    notes: tuple[str, ...] = ()
    """In words: what the source did and this does not."""
    source: str | None = None
    """Where a task of one's own comes from, as in a `RunConfig`."""


def preset(name: str, task: str) -> Preset:
    """Return a preset's settings for a task, or raise naming which there are and the nearest one.

    >>> notes = dp.preset("lra-2020", "retrieval").notes   # what the source did and this cannot do

    Args:
        name: ``mini``, or the source whose settings are repeated.
        task: The task's name.
    """
    known = PRESETS[check_name("preset", name, PRESETS)]
    if check_name("task", task, TASKS) not in known:
        raise ValueError(
            f"`preset` {name!r} must be of a task it knows, got {task!r}; it knows "
            f"{', '.join(known)}; use another preset"
        )
    return known[task]


def _mini(
    *,
    batch_size: int = 16,
    updates: int = 800,
    learning_rate: float = 2e-3,
    warmup: int = 50,
    evaluate_every: int = 400,
    **model: Any,
) -> Preset:
    """Return a run of at most two minutes on one core."""
    return Preset(
        model=ModelConfig(dim=32, blocks=2, heads=2, hidden=64, **model),
        training=TrainingConfig(
            updates=updates,
            batch_size=batch_size,
            learning_rate=learning_rate,
            warmup=warmup,
            evaluate_every=evaluate_every,
        ),
    )


MINI = {
    "listops-mini": _mini(batch_size=32, updates=2000, evaluate_every=500),
    "text-mini": _mini(),
    "retrieval-mini": _mini(batch_size=32, updates=500, evaluate_every=250),
    "image-mini": _mini(),
    "pathfinder-mini": _mini(updates=600, evaluate_every=300, input="linear"),
    "mnist-mini": _mini(),
    "newsgroups-mini": _mini(),
    "listops-1000": _mini(updates=600, evaluate_every=300),
    "wikitext2-mini": _mini(updates=600),
    "recall-mini": _mini(batch_size=32, updates=1500, evaluate_every=500),
    "copying-mini": _mini(batch_size=32, updates=1500, evaluate_every=500),
    "enwik8-mini": _mini(updates=600, evaluate_every=600),  # five million bytes to look at
}
"""Small models for small tasks, for a CPU; never to be reported as the tasks themselves."""

_NYSTROM_NOTES = (
    "float16 with a scaled loss; bfloat16 here",
    "a head with one hidden layer of ReLU over one document; a linear head here",
    "a one-cycle schedule from 1/25 of the peak; from 0 here",
    "tables start at N(0, 0.02²); at N(0, 1/dim) here",
    "published with --protocol nystrom-2021; its mean pooling divides by padding too, this never",
)


def _nystrom(
    *, batch_size: int, warmup: int, updates: int, evaluate_every: int, length: int | None = None
) -> Preset:
    """Return a run of the Nyströmformer repository: one small model for all tasks."""
    return Preset(
        model=ModelConfig(
            dim=64,
            blocks=2,
            heads=2,
            hidden=128,
            dropout=0.1,
            attention_dropout=0.1,
            length=length,
        ),
        training=TrainingConfig(
            updates=updates,
            batch_size=batch_size,
            learning_rate=1e-4,
            schedule="linear",
            warmup=warmup,
            weight_decay=0.0,
            beta2=0.999,
            epsilon=1e-6,
            clip=None,
            precision="bfloat16",
            evaluate_every=evaluate_every,
        ),
        notes=_NYSTROM_NOTES,
    )


_NYSTROM_LISTOPS = _nystrom(
    batch_size=32, warmup=1000, updates=5000, evaluate_every=50, length=2048
)
_NYSTROM_PATHFINDER = _nystrom(batch_size=256, warmup=312, updates=62_400, evaluate_every=312)
NYSTROM = {
    "listops": _NYSTROM_LISTOPS,
    "listops-official": _NYSTROM_LISTOPS,
    "text": _nystrom(batch_size=32, warmup=8000, updates=20_000, evaluate_every=500, length=4096),
    "retrieval": _nystrom(
        batch_size=32, warmup=800, updates=30_000, evaluate_every=300, length=4096
    ),
    "image": _nystrom(batch_size=256, warmup=175, updates=35_000, evaluate_every=175),
    "pathfinder": _NYSTROM_PATHFINDER,
    "pathfinder-official": _NYSTROM_PATHFINDER,
}
"""The Nyströmformer repository (2021): ListOps 37.1, Text 65.0, Retrieval 79.4, Image 38.2,
Pathfinder 74.2 with softmax attention."""

_LRA_NOTES = (
    "a head with one hidden layer of ReLU; a linear head here",
    "attention without biases; with them here",
    "tables start at N(0, 1), waves of unit height; at N(0, 1/dim) and unit length here",
    "decay of every parameter; of matrices and tables only here",
    "published with --protocol lra-2020",
)


def _lra(
    model: dict[str, Any], training: dict[str, Any], *notes: str, rsqrt: int | None = None
) -> Preset:
    """Return a run of Google's repository; `rsqrt` is the warm-up of 0.05 / √max(s, warm-up)."""
    settings: dict[str, Any] = {
        "beta2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.1,
        "clip": None,
    } | training
    if rsqrt is not None:
        peak = 0.05 / rsqrt**0.5
        settings = {"learning_rate": peak, "schedule": "rsqrt", "warmup": rsqrt} | settings
    return Preset(
        model=ModelConfig(**{"dropout": 0.1, "attention_dropout": 0.1} | model),
        training=TrainingConfig(**settings),
        notes=(*notes, *_LRA_NOTES),
    )


_LRA_LISTOPS = _lra(
    {"dim": 512, "blocks": 4, "heads": 8, "hidden": 1024, "encoding": "sinusoidal",
     "pooling": "cls"},
    {"updates": 5000, "batch_size": 32, "evaluate_every": 250},
    rsqrt=1000,
)  # fmt: skip
_LRA_PATHFINDER = _lra(
    {"dim": 32, "blocks": 4, "heads": 4, "hidden": 32, "encoding": "sinusoidal",
     "dropout": 0.2},
    {"updates": 62_400, "batch_size": 512, "learning_rate": 1e-3, "warmup": 312,
     "weight_decay": 0.0, "evaluate_every": 312},
    "queries, keys and values of 16 features; of the model's 32 here",
)  # fmt: skip
LRA = {
    "listops": _LRA_LISTOPS,
    "listops-official": _LRA_LISTOPS,
    "text": _lra(
        {"dim": 256, "blocks": 4, "heads": 4, "hidden": 1024, "encoding": "sinusoidal",
         "pooling": "cls"},
        {"updates": 20_000, "batch_size": 32, "evaluate_every": 500},
        rsqrt=8000,
    ),
    "retrieval": _lra(
        {"dim": 128, "blocks": 4, "heads": 4, "hidden": 512, "encoding": "sinusoidal",
         "pooling": "cls"},
        # Their warm-up of 8,000 never ends: the same line, up to where 5,000 updates reach.
        {"updates": 5000, "batch_size": 32, "evaluate_every": 250, "schedule": "rsqrt",
         "warmup": 4999, "learning_rate": 0.05 / 8000**0.5 * 4999 / 8000},
        "a head over the two documents side by side; over u, v, u∗v, u − v here",
    ),
    "image": _lra(
        {"dim": 128, "blocks": 1, "heads": 8, "hidden": 128, "pooling": "cls", "dropout": 0.3,
         "attention_dropout": 0.2},
        {"updates": 35_000, "batch_size": 256, "learning_rate": 5e-4, "warmup": 175,
         "weight_decay": 0.0, "evaluate_every": 175},
        "queries, keys and values of 64 features; of the model's 128 here",
    ),
    "pathfinder": _LRA_PATHFINDER,
    "pathfinder-official": _LRA_PATHFINDER,
}  # fmt: skip
"""Google's repository (2020): ListOps 36.4, Text 64.3, Retrieval 57.5, Image 42.4, Pathfinder
71.4 (49.4 when others ran it)."""

_AMOS_NOTES = (
    "the learning rate and batch size of a small search; one of its values here",
    "a limit of 24 hours for each phase; updates only here",
    "published on the splits of --protocol s4-2022",
)
_LINEAR = "hidden pixels told as numbers, by their absolute error; as one of 256 levels here"


def _amos(
    model: dict[str, Any],
    training: dict[str, Any],
    *notes: str,
    epochs: int,
    examples: int,
    pretraining: dict[str, Any] | None = None,
) -> Preset:
    """Return a run of Amos et al.: rotary, no dropout, masked pretraining, then fine-tuning."""
    updates = epochs * examples // training["batch_size"]
    settings: dict[str, Any] = {"schedule": "constant", "weight_decay": 0.0} | training
    return Preset(
        model=ModelConfig(**{"encoding": "rotary"} | model),
        training=TrainingConfig(updates=updates, evaluate_every=1000, **settings),
        pretraining=PretrainingConfig(updates=updates, warmup=5000, **pretraining or {}),
        notes=(*notes, *_AMOS_NOTES),
    )


_AMOS_LISTOPS = _amos(
    {"dim": 512, "blocks": 6, "heads": 8, "hidden": 2048},
    {"batch_size": 32, "learning_rate": 1e-4, "warmup": 2000},
    epochs=100,
    examples=96_000,
    pretraining={"learning_rate": 1e-3, "share": 0.1},
)
_AMOS_PATHFINDER = _amos(
    {"dim": 128, "blocks": 4, "heads": 8, "hidden": 128, "input": "linear"},
    {"batch_size": 32, "learning_rate": 5e-4, "warmup": 5000},
    _LINEAR,
    epochs=200,
    examples=160_000,
    pretraining={"share": 0.5},
)
AMOS = {
    "listops": _AMOS_LISTOPS,
    "listops-official": _AMOS_LISTOPS,
    "text": _amos(
        {"dim": 512, "blocks": 6, "heads": 8, "hidden": 2048},
        {"batch_size": 32, "learning_rate": 5e-4, "warmup": 2000, "schedule": "cosine",
         "weight_decay": 0.1},
        "characters instead of bytes",
        epochs=65,
        examples=25_000,
        pretraining={"share": 0.15, "schedule": "constant"},
    ),
    "retrieval": _amos(
        {"dim": 128, "blocks": 4, "heads": 4, "hidden": 512},
        {"batch_size": 32, "learning_rate": 5e-4, "warmup": 5000},
        "characters instead of bytes",
        epochs=32,
        examples=147_086,
        pretraining={"share": 0.15},
    ),
    "image": _amos(
        {"dim": 64, "blocks": 3, "heads": 4, "hidden": 128, "input": "linear", "pooling": "max"},
        {"batch_size": 50, "learning_rate": 1e-3, "warmup": 2000},
        _LINEAR,
        epochs=200,
        examples=45_000,
        pretraining={"share": 0.5},
    ),
    "pathfinder": _AMOS_PATHFINDER,
    "pathfinder-official": _AMOS_PATHFINDER,
}  # fmt: skip
"""Amos, Berant and Gupta (2024), "Never Train from Scratch": 86.2 over six tasks with rotary
encoding and masked pretraining; leave the pretraining out for their runs from scratch (74.3)."""

PRESETS: dict[str, dict[str, Preset]] = {
    "mini": MINI,
    "nystrom-2021": NYSTROM,
    "lra-2020": LRA,
    "amos-2023": AMOS,
}
"""Every preset: its tasks, and how each is run."""

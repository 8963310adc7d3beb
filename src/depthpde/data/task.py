"""What a task is: its shape, its splits, and the recipe that prepares it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from depthpde.errors import check_name, check_positive

if TYPE_CHECKING:
    from depthpde.data.protocol import Rules
    from depthpde.data.source import Source
    from depthpde.data.writer import Writer

SPLITS = ("train", "validation", "test")


class TaskKind(StrEnum):
    """What one example is."""

    SEQUENCE = "sequence"
    """Tokens of varying length and one label."""
    IMAGE = "image"
    """The grey levels of a grid, row by row, and one label."""
    PAIR = "pair"
    """Two sequences, encoded apart, and one label."""
    LANGUAGE = "language"
    """A window of a long text; the label of each site is the next token."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What a recipe needs to know besides the task."""

    data: Path | None
    """Folder with the official files, or None."""
    rules: Rules
    """What the chosen protocol says about this task."""
    seed: int
    """Seed of everything generated or drawn."""
    workers: int
    """Threads of the generators; the bytes do not depend on it."""
    check: bool = True
    """Refuse files whose published checksum differs."""
    log: Callable[[str], None] = field(default=lambda line: None)
    """Told what is going on, one line at a time."""


Recipe = Callable[["Task", Request, "Writer"], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task: everything a model and a trainer must know, and how its arrays come about.

    >>> from dataclasses import replace
    >>> sizes = {"train": 64, "validation": 16, "test": 16}
    >>> small = replace(dp.tasks["listops-mini"], splits=sizes)
    """

    name: str
    """Its name; mini tasks end in ``-mini``."""
    title: str
    """One line in words."""
    family: str
    """The family that protocols name: ``listops``, ``text``, ``image`` …; a mini shares it."""
    kind: TaskKind
    """What one example is."""
    length: int
    """Longest sequence (one document of a pair; a window of a language task)."""
    vocabulary: int
    """Number of token ids, padding included."""
    classes: int
    """Number of labels; for a language task the vocabulary again."""
    splits: Mapping[str, int]
    """Examples in each split (bytes for a language task) under the strict protocol."""
    recipe: Recipe
    """Reads or generates, and hands the arrays to the writer."""
    shift: int = 1
    """Token id = stored symbol + shift; 1 keeps id 0 for padding."""
    grid: tuple[int, int] | None = None
    """Rows and columns of an image."""
    source: Source | None = None
    """The official files; None when the task is generated."""
    generator: int = 1
    """Version of the recipe: raised whenever the same request would give other bytes."""

    def __post_init__(self) -> None:
        """Refuse a task that contradicts itself."""
        for name in ("length", "vocabulary", "classes"):
            check_positive(name, getattr(self, name))
        if self.grid is not None and self.grid[0] * self.grid[1] != self.length:
            raise ValueError(
                f"`grid` must have as many pixels as `length`, got {self.grid} and {self.length}"
            )
        for split in self.splits:
            check_name("splits", split, SPLITS)

    @property
    def mini(self) -> bool:
        """Whether this is a small version for CPU work, never to be reported as the task."""
        return self.name.endswith("-mini")

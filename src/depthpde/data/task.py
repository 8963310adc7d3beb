"""What a task is: its shape, its splits, and the recipe that prepares it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from depthpde.data.own.examples import read_examples
from depthpde.data.own.recipe import DIGITS, ExamplesRecipe, TextRecipe, divide, version
from depthpde.errors import check_name, check_positive

if TYPE_CHECKING:
    from depthpde.data.protocol import Rules
    from depthpde.data.source import Source
    from depthpde.data.writer import Writer

SPLITS = ("train", "validation", "test")


class TaskKind(StrEnum):
    """What one example is."""

    SEQUENCE = "sequence"
    """Tokens, or real numbers at every site, of varying length; one label."""
    IMAGE = "image"
    """The pixels of a grid, row by row, and one label."""
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
    """Called with what is going on, one line at a time."""


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
    recipe: Recipe = field(repr=False)
    """Reads or generates, and hands the arrays to the writer."""
    shift: int = 1
    """Token id = stored symbol + shift; 1 keeps id 0 for padding."""
    grid: tuple[int, int] | None = None
    """Rows and columns of an image."""
    source: Source | None = None
    """The official files; None when the task is generated."""
    generator: int = 1
    """Version of the recipe: raised whenever the same request would give other bytes. A digest of
    the arrays where they are somebody's own."""
    channels: int | None = None
    """Real numbers at each site; None where sites hold symbols."""

    def __post_init__(self) -> None:
        """Refuse a task that contradicts itself."""
        for name in ("length", "vocabulary", "classes"):
            check_positive(name, getattr(self, name))
        if self.channels is not None:
            check_positive("channels", self.channels)
        if self.grid is not None and self.grid[0] * self.grid[1] != self.length:
            raise ValueError(
                f"`grid` must have as many pixels as `length`, got {self.grid} and {self.length}"
            )
        for split in self.splits:
            check_name("splits", split, SPLITS)
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise ValueError(
                "`name` must be of letters, digits, dots, dashes and underscores, got "
                f"{self.name!r}; it becomes a folder's name"
            )

    @classmethod
    def from_arrays(
        cls,
        name: str,
        x: Any,
        y: Any = None,
        *,
        test: Any = None,
        validation: Any = None,
        seed: int = 0,
    ) -> Self:
        """Make a task of your own examples: tokens, real-valued series or images.

            tokens   whole numbers [n, length], or n sequences of their own length; words as bytes
            series   real numbers [n, length] or [n, length, channels], or n of their own length
            images   bytes [n, height, width(, channels)], or real numbers with four axes

        Every channel of numbers is brought to mean 0 and deviation 1 of the training split. Splits
        that you do not give are held out, every class by its share: 70 % train, 10 % validation,
        20 % test.

        >>> x, y = torch.randn(40, 16, 2).cumsum(1), [0, 1] * 20
        >>> dp.Task.from_arrays("walks", x, y).channels
        2

        Args:
            name: Of letters, digits, dots, dashes and underscores.
            x: Arrays, tensors or lists; or a data set of PyTorch or Hugging Face with its labels.
            y: One label for each example; leave it out where `x` is a data set.
            test: ``(x, y)`` or a data set that judges; give it where the test split is fixed.
            validation: ``(x, y)`` or a data set that selects.
            seed: Of what is held out.
        """
        train = read_examples(x, y)
        fixed = {"test": test, "validation": validation}
        given = {
            split: read_examples(*(each if isinstance(each, tuple) else (each,)), like=train)
            for split, each in fixed.items()
            if each is not None
        }
        splits = divide(train, given, seed)
        symbols = train.channels is None
        largest = max(int(each.values.max()) for each in splits.values()) if symbols else 0
        what = "tokens" if symbols else f"{train.channels} real numbers a site"
        return cls(
            name=name,
            title=f"{what}, {len(train.names)} classes",
            family=name,
            kind=TaskKind.SEQUENCE if train.grid is None else TaskKind.IMAGE,
            length=max(int(each.lengths.max()) for each in splits.values()),
            vocabulary=largest + 2 if symbols else 1,
            classes=len(train.names),
            splits={split: len(each) for split, each in splits.items()},
            recipe=ExamplesRecipe(splits),
            shift=int(symbols),
            grid=train.grid,
            generator=version(splits),
            channels=train.channels,
        )

    @classmethod
    def from_text(cls, name: str, text: str | bytes, *, window: int = 128) -> Self:
        """Make a language task of one long text: predict every next byte from those before it.

        >>> dp.Task.from_text("abc", "abc" * 2000, window=32).splits["test"]
        300

        Args:
            name: Of letters, digits, dots, dashes and underscores.
            text: The first 90 % train, the next 5 % select, the last 5 % judge.
            window: Bytes of one example.
        """
        whole = text.encode() if isinstance(text, str) else bytes(text)
        recipe = TextRecipe(whole)
        shortest = min(len(each) for each in recipe.splits.values())
        if shortest <= check_positive("window", window):
            raise ValueError(
                f"`text` must be longer than {20 * window:,} bytes for windows of {window}, got "
                f"{len(whole):,}; give more text or a smaller window"
            )
        return cls(
            name=name,
            title="the next byte of a text",
            family=name,
            kind=TaskKind.LANGUAGE,
            length=window,
            vocabulary=257,
            classes=257,
            splits={split: len(each) for split, each in recipe.splits.items()},
            recipe=recipe,
            generator=int(hashlib.sha256(whole).hexdigest()[:DIGITS], 16),
        )

    @property
    def mini(self) -> bool:
        """Whether this is a small version for CPU work, never to be reported as the task."""
        return self.name.endswith("-mini")

    @property
    def own(self) -> bool:
        """Whether its version is a digest of somebody's own data, not a small number."""
        return self.generator >= 1 << 20

    @property
    def stored_as(self) -> str:
        """The name of its prepared folder: other data of the same name lie elsewhere."""
        return f"{self.name}-{self.generator:012x}" if self.own else self.name

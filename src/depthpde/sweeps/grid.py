"""Plan: tasks × variants × seeds as runs, in an order that leaves whole pairs when cut short."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from depthpde.data.protocol import STRICT
from depthpde.errors import check_name, check_positive, check_range
from depthpde.locks import GRIDS_LOCK, locked
from depthpde.records.protocols.protocol import StudyProtocol
from depthpde.records.record import GRIDS, Cell, Grid, read_grid, write_grid

if TYPE_CHECKING:  # a plan is described without torch; its runs import it
    from depthpde.runs.presets import Preset
    from depthpde.runs.run import RunConfig


MOST_SEEDS = 10_000
"""Seeds that a number may stand for: a slip of the keyboard is not a year of computing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of a table: what is changed, and what it is called.

    Variant("after embedding", model={"positions": ("after_embedding",)})

    >>> variant = dp.Variant("after embedding", model={"positions": ("after_embedding",)})
    """

    label: str
    """What it is called in tables."""
    words: str = ""
    """What it is, in a sentence."""
    model: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the ModelConfig that differ from the task's preset."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the TrainingConfig that do."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the RunConfig itself that do, such as its protocol."""

    def __post_init__(self) -> None:
        """Refuse what would be overwritten or could not be named in a table."""
        if not self.label.strip():
            raise ValueError("`label` must say what the variant is called, got an empty one")
        for key in ("task", "seed", "model", "training", "study"):
            if key in self.run:
                raise ValueError(
                    f"`run` of {self.label!r} must not set {key!r}: the plan does; give tasks and "
                    "seeds to the plan, and changes of model and training by these names"
                )


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed once is kept in __dict__
class Plan:
    """Which runs answer one question.

    >>> variants = [dp.Variant("baseline"), dp.Variant("wide", model={"dim": 64})]
    >>> start = dp.bases("mini", ["listops-mini"])
    >>> plan = dp.Plan(name="width", question="Wider?", variants=variants, bases=start, seeds=3)
    >>> len(plan.runs)
    6
    """

    name: str
    """Of the grid's file: letters, digits, dots, dashes and underscores."""
    question: str
    """Its question, in a sentence."""
    variants: Sequence[Variant]
    """What is compared; the first is the baseline unless another is named."""
    bases: Mapping[str, Preset]
    """Task → what all variants start from; see `bases`."""
    seeds: int | Sequence[int] = 6
    """How many, or which. One seed is one data order and one set of first weights for all."""
    baseline: str = ""
    """Label of the variant that the others are compared with."""
    protocol: str = STRICT
    """Which examples select and judge."""
    study: StudyProtocol | None = None
    """What is fixed before the first run: its rates, gates and seeds; see `compute_study`."""
    rates: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(Task, variant) → learning rate, where the runs of a study chose one."""
    stamp: str | None = None
    """Digest of the protocol that its runs are made under; set by `compute_study` alone."""
    file: str = field(default="", compare=False)
    """The grid file that it was read from, as a person gave it; empty for any other plan."""

    def __post_init__(self) -> None:
        """Refuse a plan without runs, or with two rows of one name."""
        if not re.fullmatch(r"\w[\w.-]*", self.name):
            raise ValueError(
                "`name` must be of letters, digits, dots, dashes and underscores, got "
                f"{self.name!r}; it becomes a file's name"
            )
        if isinstance(self.seeds, int):
            count = check_positive("seeds", self.seeds)
            check_range("seeds", count, 1, MOST_SEEDS, advice="name those you want in a list")
            object.__setattr__(self, "seeds", tuple(range(count)))
        labels = [each.label for each in self.variants]
        asked: dict[str, list[Any]] = {"seeds": self._seeds, "variants": labels}
        for name, values in (asked | {"bases": list(self.bases)}).items():
            if not values:
                raise ValueError(f"`{name}` must hold at least one, got none")
            first, times = Counter(values).most_common(1)[0]
            if times > 1:
                raise ValueError(f"`{name}` must differ from each other, got {first!r} twice")
        chosen = self.baseline or labels[0]
        object.__setattr__(self, "baseline", check_name("baseline", chosen, labels))

    @cached_property
    def cells(self) -> tuple[tuple[Cell, RunConfig], ...]:
        """Every cell and its run, seed by seed: a sweep that is cut short leaves whole pairs."""
        # A seed changes no other setting, so each config is built and checked for one seed only.
        first, *_ = self._seeds
        runs = {
            (task, variant.label): self._run(task, base, variant, first)
            for task, base in self.bases.items()
            for variant in self.variants
        }
        found = []
        for seed in self._seeds:
            for (task, label), like in runs.items():
                run: RunConfig = replace(like, seed=seed)
                found.append((Cell(task, label, seed, run.id), run))
        return tuple(found)

    @cached_property
    def runs(self) -> tuple[RunConfig, ...]:
        """The runs in order, each once: two cells of equal settings share one."""
        return tuple({cell.run: run for cell, run in self.cells}.values())

    @cached_property
    def grid(self) -> Grid:
        """What the results folder keeps of the plan."""
        words = {each.label: {"words": each.words} for each in self.variants}
        cells = tuple(cell for cell, _ in self.cells)
        return Grid(self.name, self.question, self.baseline, cells, words)

    def grid_in(self, results: Path) -> Grid:
        """Return the grid together with what a results folder knows of it already.

        The cells of both, where those they share are the same runs; a grid of that name with
        other runs, or with none of these, is another experiment, and never written over.
        """
        grid, path = self.grid, results / GRIDS / f"{self.name}.json"
        if not path.is_file():
            return grid
        there = read_grid(path)
        known, asked = ({_place(cell): cell for cell in each.cells} for each in (there, grid))
        shared = known.keys() & asked.keys()
        if not shared or any(known[each].run != asked[each].run for each in shared):
            why = "the same cells with other settings" if shared else "no cell of it"
            raise ValueError(
                f"{self.name!r} must go on with the grid in {path}, got {why}, such as another "
                "scale; choose another folder with --out, or remove that file"
            )
        more = [cell for place, cell in known.items() if place not in asked]
        if not more:
            return grid
        cells = sorted((*grid.cells, *more), key=lambda cell: cell.seed)
        words = grid.variants | {
            label: each for label, each in there.variants.items() if label not in grid.variants
        }
        return replace(grid, cells=tuple(cells), variants=words)

    def write(self, results: Path) -> Path:
        """Write the grid into a results folder, what it holds kept, and return its file.

        One process at a time reads, adds its cells and writes: none loses those of another.
        """
        try:
            results.mkdir(parents=True, exist_ok=True)
            with locked(results / GRIDS_LOCK):
                return write_grid(results, self.grid_in(results))
        except OSError as error:
            raise OSError(
                error.errno,
                f"results cannot be written ({error.strerror}); choose another folder with --out",
                str(results),
            ) from error

    @property
    def command(self) -> str:
        """The command that computes it, for messages: a grid file is not found by its name."""
        return shlex.join(["depthpde", "sweep", self.file or self.name])

    @property
    def _seeds(self) -> list[int]:
        assert not isinstance(self.seeds, int), "read in __post_init__"
        return list(self.seeds)

    def _run(self, task: str, base: Preset, variant: Variant, seed: int) -> RunConfig:
        from depthpde.runs.run import RunConfig

        rate = self.rates.get((task, variant.label))
        chosen = {} if rate is None else {"learning_rate": rate}
        try:
            return RunConfig.from_dict(
                {
                    "task": task,
                    "model": base.model.to_dict() | dict(variant.model),
                    "training": _trained(base, dict(variant.training) | chosen),
                    "seed": seed,
                    "study": self.stamp,
                }
                | _base_fields(base)
                | {"protocol": self.protocol}
                | _known(variant.run)
            )
        except ValueError as error:
            raise ValueError(f"{variant.label!r} on {task}: {error}") from error


def bases(
    name: str,
    tasks: Sequence[str],
    *,
    model: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
) -> dict[str, Preset]:
    """Return a preset's settings for several tasks, with the same changes to all.

    >>> start = dp.bases("mini", ["listops-mini", "text-mini"], training={"updates": 1000})

    Args:
        name: The preset.
        tasks: Names of tasks it knows; or your own, as ``module:function`` or a folder of arrays,
            whose settings follow from their sizes.
        model: Fields of the ModelConfig to change.
        training: Fields of the TrainingConfig to change.
    """
    from depthpde.data.lookup import find_anywhere, find_task, is_source
    from depthpde.models.config import ModelConfig
    from depthpde.runs.defaults import defaults
    from depthpde.runs.presets import preset
    from depthpde.training.config import TrainingConfig

    found = {}
    for word in tasks:
        task, base = word, None
        if is_source(word):
            own = find_task("", word)
            task, base = own.name, replace(defaults(own), source=find_anywhere(word))
        base = base or preset(name, task)
        found[task] = replace(
            base,
            model=ModelConfig.from_dict(base.model.to_dict() | dict(model or {})),
            training=TrainingConfig.from_dict(_trained(base, training or {}), "training"),
        )
    return found


def _trained(base: Preset, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of training after changes; its warm-up fits, unless they set it."""
    from depthpde.training.config import shorten_warmup

    training = base.training.to_dict() | dict(changes)
    return training if "warmup" in changes else shorten_warmup(training)


def _place(cell: Cell) -> tuple[str, str, int]:
    return cell.task, cell.variant, cell.seed


def _base_fields(base: Preset) -> dict[str, Any]:
    """Return what a preset says of the run besides model and training, such as pretraining."""
    from depthpde.runs.run import RunConfig

    shared = {each.name for each in fields(RunConfig)} & {each.name for each in fields(base)}
    return {name: _plain(getattr(base, name)) for name in shared - {"model", "training"}}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    from depthpde.runs.run import RunConfig

    names = [each.name for each in fields(RunConfig)]
    return {check_name("run", key, names): _plain(value) for key, value in values.items()}


def _plain(value: Any) -> Any:
    """Return a config as the values a file would hold, so that both become the same run."""
    return value.to_dict() if hasattr(value, "to_dict") else value

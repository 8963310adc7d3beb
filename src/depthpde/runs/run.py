"""RunConfig: everything that makes one run, and the name that follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from torch import nn

from depthpde.config import Natural, Positive, Range, Settings
from depthpde.data.catalog import resolved
from depthpde.data.lookup import find_task
from depthpde.data.protocol import STRICT
from depthpde.data.task import Task, TaskKind
from depthpde.layers.embedding import InputKind
from depthpde.layers.registry import LayerKind
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.position import Option
from depthpde.models.vision import VisionTransformer
from depthpde.seeds import generator
from depthpde.simulator.config import SimulatorConfig
from depthpde.simulator.learned import build_simulator
from depthpde.training.config import TrainingConfig
from depthpde.training.pretraining import PretrainingConfig

_SINGLE = (TaskKind.SEQUENCE, TaskKind.IMAGE)
_KINDS = {"examples": _SINGLE, "corruption": _SINGLE, "shuffles": (*_SINGLE, TaskKind.PAIR)}
"""Setting → the kinds of tasks that can have it."""


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed once is kept in __dict__
class RunConfig(Settings):
    """One training of one model on one task from one seed.

    >>> config = dp.ModelConfig(dim=32, positions=("after_embedding",))
    >>> run = dp.RunConfig(task="listops-mini", model=config, training=dp.TrainingConfig(), seed=1)
    >>> len(run.id)
    16
    """

    task: str
    """The task's name."""
    model: ModelConfig
    """The model; what the task knows is filled in."""
    training: TrainingConfig
    """How it is trained; its seed becomes that of the run."""
    seed: Natural = 0
    """Of the first weights, the order of the examples and dropout."""
    protocol: str = STRICT
    """Which examples select and judge."""
    pretraining: PretrainingConfig | None = None
    """A stage before, on the task's own inputs; None leaves it out."""
    simulator: SimulatorConfig | None = None
    """How the blocks are integrated; None stacks them, as a Transformer does."""
    recipe: int | None = None
    """Version of the task's recipe: other data are another run. Filled in."""
    threads: Positive | None = None
    """Threads of its arithmetic on the CPU; the last bits depend on it. None is one thread, so that
    runs are alike wherever they are computed; more is another run."""
    examples: Positive | None = None
    """Train on so many examples, at even distances in the split; None takes all."""
    corruption: tuple[Annotated[float, Range(0.0, 1.0)], ...] | None = None
    """Levels of noise at which the test split is read once more; see `corrupt`. None reads it
    clean alone."""
    windows: tuple[Positive, ...] | None = None
    """Read the test split once more with attention limited to so many sites either way."""
    shuffles: tuple[Positive, ...] | None = None
    """Read it once more with blocks of so many symbols in another order."""
    transfer: tuple[str, ...] | None = None
    """Read the test split of other tasks, ``TASK`` or ``TASK/LENGTH``, longer or finer; see
    `carried`. Those of another family are passed over: one variant serves several tasks."""
    study: str | None = None
    """Digest of the protocol that the run is made under; None for none. It is part of the id: a run
    made without the protocol can never be taken for one made under it."""
    source: str | None = None
    """Where a task of one's own comes from: ``module:function`` or a folder; see `find_task`. The
    run's name does not depend on it: `recipe` is a digest of the data themselves."""

    def check(self) -> None:
        """Fill in what follows from the rest, and refuse what contradicts itself."""
        if self.recipe is None:
            self._set(recipe=find_task(self.task, self.source).generator)
        if self.threads == 1:
            self._set(threads=None)
        self._set(training=replace(self.training, seed=self.seed))
        self._set(model=self.model.fit(self.about))
        refused = self.about.kind is TaskKind.LANGUAGE or self.model.input is InputKind.PATCH
        if self.pretraining is not None and refused:
            raise ValueError(
                "`pretraining` must be left out for language tasks and patch inputs, got "
                f"{self.task} with {self.model.input} input"
            )
        for name, kinds in _KINDS.items():
            if getattr(self, name) and self.about.kind not in kinds:
                raise ValueError(
                    f"`{name}` must be of {' or '.join(kinds)} tasks, got {self.task}, a "
                    f"{self.about.kind} task; leave out the one or the other"
                )
        if self.windows and self.model.interaction is not None:
            raise ValueError(
                "`windows` must be left out where nothing attends, got interaction "
                f"{str(self.model.interaction)!r}; they limit attention"
            )
        if self.windows and any(each.option is Option.WEIGHTS for each in self.model.placements):
            raise ValueError(
                "`windows` must be left out where something is placed on the weights of attention, "
                f"got option {Option.WEIGHTS.value!r}; they limit attention that forms none"
            )
        if self.pretraining is not None and self.simulator is not None:
            raise ValueError("`pretraining` must be left out for a simulator; it trains as a whole")

    @cached_property
    def about(self) -> Task:
        """The task itself, as the protocol changes it."""
        return resolved(find_task(self.task, self.source), self.protocol)[0]

    @cached_property
    def id(self) -> str:
        """The run's name: 16 digits of the SHA-256 of all that is not None.

        A setting that is None says nothing, so one that is added later changes no old name.
        """
        values = _said(self.to_dict() | {"source": None})
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """What the run is called where no grid names it: what is placed where."""
        placed = [
            f"{each.position.value}"
            + ("" if each.layer.kind is LayerKind.DIFFUSION else f" {each.layer.kind}")
            for each in self.model.placements
        ]
        stages = [f"{self.pretraining.objective} pretraining"] if self.pretraining else []
        integrated = [f"simulator, {self.simulator.method}"] if self.simulator else []
        return " + ".join([*integrated, *placed, *stages]) or "baseline"

    def build(self) -> nn.Module:
        """Build the model with the seed's first weights.

        Parameters that two models share start alike, so two runs of one seed are a pair.
        """
        first = generator(self.seed, "model")
        if self.simulator is not None:
            return build_simulator(self.model, self.simulator, self.about, first)
        chosen: type[Classifier] | type[LanguageModel] = Classifier
        if self.about.kind is TaskKind.LANGUAGE:
            chosen = LanguageModel
        elif self.model.input is InputKind.PATCH:
            chosen = VisionTransformer
        return chosen(self.model, generator=first)


def _said(value: Any) -> Any:
    """Return plain values without those that are None."""
    if isinstance(value, Mapping):
        return {key: _said(each) for key, each in value.items() if each is not None}
    return [_said(each) for each in value] if isinstance(value, list) else value

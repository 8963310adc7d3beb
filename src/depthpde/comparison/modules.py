"""Train anybody's nn.Module on a task, from seeds that two models share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.comparison.entrant import Entrant, check_first
from depthpde.data.catalog import folder_of, load
from depthpde.data.task import Task
from depthpde.layers.ratio import BoundedRatio
from depthpde.records.learning_curves import join
from depthpde.records.run_model import VariantRole
from depthpde.records.scores import Endpoint
from depthpde.records.trivial_lines import largest_class
from depthpde.runs.execute import trivial_lines
from depthpde.seeds import derive
from depthpde.training.config import TrainingConfig
from depthpde.training.evaluate import Evaluation, evaluate
from depthpde.training.history import History, Status
from depthpde.training.loop import train

Factory = Callable[[], nn.Module]
_MASKS = ("valid_mask", "attention_mask", "mask", "padding_mask")
_PADDING = ("src_key_padding_mask", "key_padding_mask")


class AnyModule(nn.Module):
    """Call a module as the trainer calls ours: inputs and mask in, logits out.

    The mask goes to the first argument that is called like one: ``valid_mask``, ``attention_mask``,
    ``mask`` with True = real; ``src_key_padding_mask`` with True = padding. Without such an
    argument the module sees the padding. An output with ``.logits`` gives those.

    Args:
        module: Takes inputs [batch, length(, channels)] and returns logits [batch, classes], or
            [batch, length, vocabulary] for a language task.
        classes: Of the task.
    """

    def __init__(self, module: nn.Module, classes: int) -> None:
        super().__init__()
        self.module, self.classes = module, classes
        names = list(inspect.signature(module.forward).parameters)
        self._mask = next((each for each in names if each in (*_MASKS, *_PADDING)), None)
        self._inputs = "input_ids" if "input_ids" in names else None

    def forward(self, inputs: Tensor, valid_mask: Tensor | None = None) -> Tensor:
        """Return the logits."""
        mask_arguments: dict[str, Any] = {}
        if self._mask is not None and valid_mask is not None:
            whole = self._mask == "attention_mask"
            mask_arguments[self._mask] = valid_mask.long() if whole else valid_mask
            if self._mask in _PADDING:
                mask_arguments[self._mask] = ~valid_mask
        if self._inputs is not None:
            found = self.module(**{self._inputs: inputs}, **mask_arguments)
        else:
            found = self.module(inputs, **mask_arguments)
        logits = getattr(found, "logits", found)
        if not isinstance(logits, Tensor) or logits.shape[-1] != self.classes:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(found).__name__
            raise ValueError(
                f"`variants` must make modules that return logits of {self.classes} classes, got "
                f"{got}; end the module with a linear layer of that width"
            )
        return logits


def trained(
    task: Task,
    factories: Mapping[str, Factory],
    seeds: Sequence[int],
    config: TrainingConfig,
    endpoint: Endpoint,
    prepared: Path,
    log: Callable[[str], None] = lambda line: None,
) -> list[Entrant]:
    """Train what every factory makes from every seed, seed by seed.

    torch's random stream is set to the seed before a factory is called, so that two models that are
    built in the same order start from the same numbers. A model that diverges, or whose test loss
    is no number, counts as the largest class, whatever weights it kept; it has no loss.

    Args:
        task: Prepared already.
        factories: Label → a function that makes a module.
        seeds: Of first weights, order of examples and dropout.
        config: How; its seed is replaced.
        endpoint: What is compared.
        prepared: Folder of prepared tasks.
        log: Called with every end.
    """
    splits = {name: load(task, name, out=prepared) for name in ("train", "validation", "test")}
    largest = largest_class(trivial_lines(folder_of(task.stored_as, prepared)))
    scores: dict[str, dict[int, float]] = {label: {} for label in factories}
    curves: dict[str, list[list[tuple[int, float]]]] = {label: [] for label in factories}
    models: dict[str, nn.Module] = {}
    seconds: dict[str, float] = dict.fromkeys(factories, 0.0)
    ratios: dict[str, dict[str, list[float]]] = {label: {} for label in factories}
    diverged = dict.fromkeys(factories, 0)
    for seed in seeds:
        for label, factory in factories.items():
            model = _make(label, factory, seed, task)
            history = train(
                model, splits["train"], replace(config, seed=seed), validation=splits["validation"]
            )
            if not history.finished:
                raise KeyboardInterrupt(
                    f"{label!r} was cut off at update {history.update}; models that come from "
                    "functions are kept nowhere, so the same call starts again"
                )
            found = None if history.status is Status.DIVERGED else evaluate(model, splits["test"])
            broken = found is None or not math.isfinite(found.loss)
            reached = _reached(None if broken else found, endpoint, largest)
            diverged[label] += broken
            if reached is not None:
                scores[label][seed] = reached
            curves[label].append(_curve(history, endpoint))
            seconds[label] += history.seconds / len(seeds)
            models[label] = model
            for name, values in _ratios(model).items():
                ratios[label].setdefault(name, []).extend(values)
            said = "none" if reached is None else f"{reached:.4g}"
            log(f"{label} · seed {seed}: {history.status}, {endpoint.value} {said}")
    first = next(iter(factories))
    check_first(first, scores[first], endpoint, finished=len(seeds), diverged=diverged[first])
    return [
        Entrant(
            label=label,
            role=_role(label == first, ratios[label]),
            scores=scores[label],
            curve=join(curves[label]),
            parameters=sum(each.numel() for each in models[label].parameters()),
            seconds=seconds[label],
            ratios=ratios[label],
            diverged=diverged[label],
        )
        for label in factories
    ]


def _reached(found: Evaluation | None, endpoint: Endpoint, largest: float | None) -> float | None:
    """Return what counts for a trained model, found on the test split; None where nothing does."""
    if found is None:  # it broke
        return largest if endpoint is Endpoint.ACCURACY else None
    return float(getattr(found, endpoint.value))


def _role(first: bool, ratios: Mapping[str, list[float]]) -> VariantRole:
    if first:
        return VariantRole.BASELINE
    return VariantRole.OURS if ratios else VariantRole.OTHER


def _make(label: str, factory: Factory, seed: int, task: Task) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "model"))
        made = factory()
    if not isinstance(made, nn.Module):
        raise ValueError(
            f"`variants` must make modules, got {type(made).__name__} from {label!r}; return the "
            "nn.Module itself"
        )
    return AnyModule(made, task.classes)


def _curve(history: History, endpoint: Endpoint) -> list[tuple[int, float]]:
    return [(each.update, getattr(each, endpoint.value)) for each in history.validations]


def _ratios(model: nn.Module) -> dict[str, list[float]]:
    """Return what diffusion layers of ours have learned, wherever they were inserted."""
    found = {}
    for name, each in model.named_modules():
        if isinstance(each, BoundedRatio):
            short = name.removeprefix("module.").removesuffix(".ratio")
            found[short] = [float(value) for value in each().detach().flatten()]
    return found

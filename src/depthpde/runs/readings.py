"""What a finished model makes of its test split when something is changed about it.

corrupted      noise of several levels                                     RunConfig.corruption
windowed       attention limited to so many sites either way               RunConfig.windows
shuffled       blocks of so many symbols in another order                  RunConfig.shuffles
transferred    another task of the same family, longer or finer            RunConfig.transfer

The locality dial is the middle two: what survives a window, or whole blocks in any order, was
local. Each reading is a test accuracy in percent, in the record under its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from depthpde.data.catalog import resolved
from depthpde.data.lookup import find_task
from depthpde.data.reader import Split
from depthpde.data.task import Task, TaskKind
from depthpde.errors import check_positive
from depthpde.layers.embedding import Encoding
from depthpde.layers.interaction import Attention
from depthpde.layers.registry import LayerConfig, LayerKind, read_layer
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.runs.corruption import corrupt, some_examples
from depthpde.runs.run import RunConfig
from depthpde.training.evaluate import evaluate

MOST = 2000
"""Examples of another task that are read, at even distances: longer ones are dear."""
OpenTest = Callable[[str], Split]
"""Prepares a task where it is not, and returns its test split."""


def read_again(
    model: nn.Module, split: Split, run: RunConfig, open_test: OpenTest
) -> dict[str, dict[str, float]]:
    """Return every further reading that a run asks for, by name and by what was changed.

    Args:
        model: The finished model.
        split: Its test split.
        run: What it asks for.
        open_test: The test split of another task.
    """
    size = 2 * run.training.batch_size
    found: dict[str, dict[str, float]] = {}

    def note(name: str, level: str, model: nn.Module, split: Split) -> None:
        found.setdefault(name, {})[level] = evaluate(model, split, batch_size=size).accuracy

    for share in run.corruption or ():
        note("corrupted", f"{share:g}", model, corrupt(split, share))
    for window in run.windows or ():
        with limited_attention(model, window):
            note("windowed", str(window), model, split)
    for block in run.shuffles or ():
        note("shuffled", str(block), model, shuffle_blocks(split, block))
    for place in _places(run):
        name, length = read_place(place)
        other = open_test(name)
        if length is not None:
            other = cut(other, length)
        if len(other) > MOST:
            other = some_examples(other, MOST)
        device = next(model.parameters()).device
        note("transferred", place, carried(model, run, place).to(device), other)
    return found


def check_readings(run: RunConfig) -> None:
    """Refuse, before anything is trained, a reading that the trained model could not have.

    Args:
        run: What it asks for.
    """
    for place in _places(run):
        _elsewhere(run, place)


def _places(run: RunConfig) -> Iterator[str]:
    """Yield the places of `transfer` that are of the run's own family."""
    for place in run.transfer or ():
        if find_task(read_place(place)[0], None).family == run.about.family:
            yield place


@contextmanager
def limited_attention(model: nn.Module, window: int) -> Iterator[None]:
    """Let every site see no more than so many sites either way, for as long as this lasts.

    Args:
        model: Any with our attention.
        window: Sites on each side; its own is always seen.
    """
    check_positive("window", window)
    layers = [each for each in model.modules() if isinstance(each, Attention)]
    if not layers or any(each.explicit for each in layers):
        raise ValueError(
            "`windows` must be of a model whose attention forms no weights, got one "
            f"{'with nothing of the kind' if not layers else 'that does'}; leave them out"
        )
    try:
        for each in layers:
            each.window = window
        yield
    finally:
        for each in layers:
            each.window = None


def shuffle_blocks(split: Split, size: int, *, seed: int = 0) -> Split:
    """Return a split whose examples have their blocks in another order, the same for every model.

    Both documents of a pair are reordered, each by itself.

    Args:
        split: Of an image, a sequence or a pair task.
        size: Symbols of a block; the last may be shorter.
        seed: Of the order.
    """
    check_positive("shuffles", size)
    if split.kind == TaskKind.LANGUAGE:
        raise ValueError(
            f"`shuffles` must be of an image, a sequence or a pair task, got a {split.kind} task; "
            "leave them out"
        )
    random, stored = np.random.default_rng(seed), np.array(split.tokens)
    for start, end in zip(split.offsets[:-1], split.offsets[1:], strict=True):
        pieces = [stored[at : min(at + size, end)].copy() for at in range(start, end, size)]
        order = random.permutation(len(pieces))
        stored[start:end] = np.concatenate([pieces[each] for each in order])
    return replace(split, tokens=stored)


def cut(split: Split, length: int) -> Split:
    """Return a split whose examples end after so many symbols."""
    _check_cut(split.kind)
    starts, ends = split.offsets[:-1], split.offsets[1:]
    ends = np.minimum(ends, starts + length)
    tokens = np.concatenate([split.tokens[a:b] for a, b in zip(starts, ends, strict=True)])
    offsets = np.concatenate(([0], np.cumsum(ends - starts)))
    return replace(split, tokens=tokens, offsets=offsets, length=min(length, split.length))


def _check_cut(kind: TaskKind) -> None:
    if kind is not TaskKind.SEQUENCE:
        raise ValueError(
            f"`transfer` must name a length for sequences alone, got a {kind} task; name the task "
            "alone"
        )


def read_place(place: str) -> tuple[str, int | None]:
    """Read ``TASK`` or ``TASK/LENGTH``."""
    name, _, length = place.partition("/")
    if length and not length.isdigit():
        raise ValueError(
            f"`transfer` must be TASK or TASK/LENGTH, got {place!r}; write text/1024, say"
        )
    return name, int(length) if length else None


def carried(model: nn.Module, run: RunConfig, place: str) -> nn.Module:
    """Return the same weights as a model of another task: longer, or finer in the plane.

        at n times the resolution: n² times the diffusion steps, taps n sites apart

    Time has units: a step of diffusion at half the distance covers a quarter of it.

    Args:
        model: The finished model.
        run: How it was made.
        place: ``TASK`` or ``TASK/LENGTH``.
    """
    task, config, factor = _elsewhere(run, place)
    built = Classifier(config.fit(task))
    wanted = built.state_dict()
    state = {
        name: _apart(each, factor) if each.shape != wanted[name].shape else each
        for name, each in model.state_dict().items()
    }
    built.load_state_dict(state)
    return built


_CARRIED = (TaskKind.SEQUENCE, TaskKind.IMAGE)


def _elsewhere(run: RunConfig, place: str) -> tuple[Task, ModelConfig, int]:
    """Return the other task, the model's config there, and how much finer it is."""
    name, length = read_place(place)
    task = resolved(find_task(name, None), run.protocol)[0]
    if run.simulator is not None:
        raise ValueError(
            f"`transfer` must be of a network of blocks, got {place!r} for a simulator by "
            f"{run.simulator.method!s}; leave out the one or the other"
        )
    if length is not None:
        _check_cut(task.kind)
        task = replace(task, length=min(length, task.length))
    if run.model.encoding is Encoding.LEARNED or run.about.kind not in _CARRIED:
        raise ValueError(
            "`transfer` must be of a sequence or an image model without learned positions, got "
            f"{run.model.encoding!s} ones on a {run.about.kind} task; use encoding='none' or "
            "'rotary'"
        )
    factor = _factor(run, task)
    config = replace(run.model, length=None, grid=None)
    if factor > 1 and run.model.placements:
        config = replace(config, layer=_finer(read_layer(config.layer), factor))
    return task, config, factor


def _factor(run: RunConfig, task: Task) -> int:
    here, there = run.about.grid, task.grid
    if here is None or there is None:
        return 1
    if there[0] % here[0] or there[0] // here[0] != there[1] / here[1]:
        raise ValueError(
            f"`transfer` must be to a whole multiple of {here[0]} × {here[1]}, got {there[0]} × "
            f"{there[1]}; take another task"
        )
    if run.model.placements and run.model.plane is None:
        raise ValueError(
            "`transfer` of placed layers to a finer image must be in the plane, got "
            f"{run.model.geometry!s}; use geometry='plane'"
        )
    return there[0] // here[0]


def _finer(layer: LayerConfig, factor: int) -> LayerConfig:
    if layer.kind == LayerKind.DIFFUSION:
        return replace(layer, steps=(layer.steps or 1) * factor**2)
    if layer.kind == LayerKind.LEARNED_STENCIL and layer.steps is not None:
        return replace(layer, steps=layer.steps * factor)
    raise ValueError(
        "`transfer` to a finer image must be of diffusion or a learned stencil with its reach as "
        f"`steps`, got {layer.kind!s}; leave it out"
    )


def _apart(taps: Tensor, factor: int) -> Tensor:
    """Put zeros between taps, so that they look at the same places of a finer image."""
    rows = torch.zeros((len(taps) - 1) * factor + 1, *taps.shape[1:], dtype=taps.dtype)
    rows[::factor] = taps.cpu()
    return rows

"""Rehearsal: one tiny input through a model before anything is inserted.

    future changed,   past of the stream moves          ⇒   not causal
    past changed,     future moves, never the reverse   ⇒   causal

What a description leaves open, or gets wrong, is found out by running: whether a site may see its
future, and how many features each tensor has. Where nothing can be run, the reason is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from depthpde import seeds
from depthpde.insertion.calling import call_model, quiet
from depthpde.insertion.family import BlockParts, Family, Tap, attribute
from depthpde.insertion.recorder import Recorder

LENGTH, CUT = 6, 3
"""Sites of the tiny input, and the first of them that belongs to the future."""
FIRST_TOKEN = 3
"""Small numbers are often padding or marks, which a model treats in its own way."""
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
COARSE_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a tiny input showed."""

    causal: bool | None = None
    """Whether no site sees its future; None where that could not be seen."""
    reason: str = ""
    """Why it could not be seen."""
    widths: dict[tuple[int, Tap], int] = field(default_factory=dict)
    """Features of the tensors that passed by, by block and tap."""


def rehearse(
    model: nn.Module, family: Family, blocks: Sequence[BlockParts], taps: Collection[Tap]
) -> Rehearsal:
    """Run a tiny input through a model, or its first block, and look at the stream.

    Args:
        model: The model; it is left as it was.
        family: Where its stream is.
        blocks: Its blocks.
        taps: Tensors whose width is wanted.
    """
    reason, seen = "", Rehearsal()
    for whole, feed, tensor in _feeds(model, family, blocks[0]):
        try:
            with quiet(model):
                seen = _run(feed, tensor, family, blocks, taps)
        except Exception as error:  # anything may go wrong in somebody's forward
            reason = reason or str(error)
            continue
        if whole or seen.causal:
            return seen
        why = "only a block could be tried, without the mask that the model may bring"
        return Rehearsal(None, why if seen.causal is False else seen.reason, seen.widths)
    return Rehearsal(reason=reason or "no tiny input could be made for it")


def _feeds(
    model: nn.Module, family: Family, block: BlockParts
) -> Iterator[tuple[bool, nn.Module, Tensor]]:
    """Give what can be tried: tokens or a field for the model, a field for its first block."""
    weight = next(block.parts.get_submodule(family.width).parameters(), torch.zeros(()))
    tables = [each.num_embeddings for each in model.modules() if isinstance(each, nn.Embedding)]
    tables = [size for size in tables if size > 2 * FIRST_TOKEN]
    if tables:
        span = min(min(tables) - FIRST_TOKEN, 8)
        tokens = FIRST_TOKEN + torch.arange(LENGTH).remainder(span)
        yield True, model, tokens[None].to(weight.device)
    dim = width_of(family, block.parts)
    if dim and weight.is_floating_point():
        u = torch.randn(1, LENGTH, dim, generator=seeds.generator(0, "rehearsal")).to(weight)
        batch_first = not family.batch_first or attribute(block.parts, family.batch_first)
        u = u if batch_first else u.transpose(0, 1)
        yield True, model, u
        if block.scope is not model:
            yield False, block.scope, u


def _run(
    feed: nn.Module,
    tensor: Tensor,
    family: Family,
    blocks: Sequence[BlockParts],
    taps: Collection[Tap],
) -> Rehearsal:
    sites = 0 if tensor.shape[0] == LENGTH else 1
    widths: dict[tuple[int, Tap], int] = {}
    streams: list[Tensor] = []

    def width(key: tuple[int, Tap], u: Tensor) -> None:
        widths[key] = u.shape[-1]

    def keep(u: Tensor) -> None:
        streams.append(u.detach().clone())

    with Recorder() as recorder:
        for number, block in enumerate(blocks):
            recorder.on_tap(block.parts, family.exit, keep)
            for tap in taps:
                recorder.on_tap(block.parts, tap, partial(width, (number, tap)))
        index = torch.arange(LENGTH, device=tensor.device)
        index = index.view([-1 if k == sites else 1 for k in range(tensor.ndim)])
        runs = []
        for changed in (index < 0, index >= CUT, index < 1):
            streams.clear()
            call_model(feed, (torch.where(changed, _other(tensor), tensor),), {})
            runs.append(list(streams))
    return _judge(runs, sites, widths)


def _judge(runs: list[list[Tensor]], sites: int, widths: dict[tuple[int, Tap], int]) -> Rehearsal:
    plain, future, past = runs
    if not plain or any(u.ndim < 2 or u.shape[sites] != LENGTH for u in plain):
        return Rehearsal(None, "its blocks were not called with the sites of the input", widths)
    if not all(bool(u.isfinite().all()) for u in plain):
        return Rehearsal(None, "its stream is not finite", widths)
    if any(_moved(u, v, sites, 0, CUT) for u, v in zip(plain, future, strict=True)):
        return Rehearsal(False, "", widths)
    if any(_moved(u, v, sites, 1, LENGTH - 1) for u, v in zip(plain, past, strict=True)):
        return Rehearsal(True, "", widths)
    return Rehearsal(None, "with its present weights no site moves another", widths)


def _moved(u: Tensor, v: Tensor, sites: int, first: int, count: int) -> bool:
    gap = (v - u).narrow(sites, first, count).abs().max()
    return bool(gap > TOLERANCE.get(u.dtype, COARSE_TOLERANCE) * u.abs().max())


def _other(tensor: Tensor) -> Tensor:
    """Change every site of the tiny input."""
    if tensor.is_floating_point():
        return 1 - 2 * tensor
    return torch.where(tensor == tensor.max(), FIRST_TOKEN, tensor + 1)


def width_of(family: Family, block: nn.Module) -> int:
    """Read how many features the stream has from the linear map that reads it; 0 if unknown."""
    read = linear_sizes(block.get_submodule(family.width))
    return read[0] if read else 0


def linear_sizes(module: nn.Module) -> tuple[int, int] | None:
    """Read what the linear maps of a module take in and give out: the first's and the last's."""
    parts = [each for part in _in_order(module) if (each := _sizes(part)) is not None]
    return (parts[0][0], parts[-1][1]) if parts else None


def _in_order(module: nn.Module) -> Iterator[nn.Module]:
    """Walk a chain in order of execution; of other modules only the order of names is known."""
    if isinstance(module, nn.Sequential):
        for each in module:
            yield from _in_order(each)
    else:
        yield module


def _sizes(module: nn.Module) -> tuple[int, int] | None:
    found = None
    for given, made in (("in_features", "out_features"), ("nx", "nf")):  # nx: Hugging Face's Conv1D
        if hasattr(module, given):
            found = int(getattr(module, given)), int(getattr(module, made))
    return found

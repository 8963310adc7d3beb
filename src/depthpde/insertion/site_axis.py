"""Which axis of a tensor counts the sites? The one that shrinks when the input does.

A size alone does not tell: length, width, heads and batch may all be equal. So the model is called
once more on an input that is one site shorter. Where it cannot take that, every axis of the right
size remains possible, and a reader must be content with what holds along each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from depthpde.insertion.record import Key, Output

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def find_site_axes(
    outputs: dict[Key, Output],
    length: int,
    shorter: Callable[[], dict[Key, Output] | None],
) -> dict[Key, Output]:
    """Keep the outputs that have an axis of sites, each with that axis.

    Args:
        outputs: Of a run over `length` sites.
        length: Number of sites.
        shorter: Runs over one site less; None where the model cannot take that.
    """
    less = shorter()
    found = {}
    for key, output in outputs.items():
        before = list(output.tensor.shape)
        if less is None:
            axes = [k for k, size in enumerate(before) if size == length and len(before) > 1]
        else:
            after = list(less[key].tensor.shape) if key in less else []
            axes = _shrunk(before, after, length)[:1]  # of queries × keys the queries
        if axes:
            found[key] = replace(output, axes=tuple(axes))
    if not found:
        raise ValueError(
            f"`model` must give some output with an axis of {length} sites, got none; "
            "pass the part that comes before pooling, or the right `length_axis`"
        )
    return found


def shortened(
    args: tuple[Any, ...], named: dict[str, Any], key: int | str, axis: int, length: int
) -> Iterator[Arguments]:
    """Give the arguments of a model one site shorter, in the ways in which that can be meant.

    The changed input shrinks along its own axis. A further tensor may be one of sites (a mask of
    padding) or one of pairs (a mask of attention, both of whose axes shrink).

    Args:
        args: Positional arguments.
        named: Named arguments.
        key: Which of them is the input.
        axis: Where its sites are.
        length: How many.
    """
    for pairs in (False, True):

        def cut(name: int | str, value: Any, pairs: bool = pairs) -> Any:
            if not isinstance(value, Tensor):
                return value
            last = {value.ndim - 2, value.ndim - 1} if pairs or value.ndim == 4 else set()
            for k in {axis} if name == key else {axis} | last:
                if 0 <= k < value.ndim and value.shape[k] == length:
                    value = value.narrow(k, 0, length - 1)
            return value

        yield (
            tuple(cut(k, each) for k, each in enumerate(args)),
            {name: cut(name, each) for name, each in named.items()},
        )


def _shrunk(before: list[int], after: list[int], length: int) -> list[int]:
    """List the axes that went from `length` to one less, if nothing else changed."""
    if len(before) != len(after):
        return []
    pairs = list(zip(before, after, strict=True))
    if any(a != b and (a, b) != (length, length - 1) for a, b in pairs):
        return []
    return [k for k, pair in enumerate(pairs) if pair == (length, length - 1)]

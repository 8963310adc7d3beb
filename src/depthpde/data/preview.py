"""One example of a prepared task, made readable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from depthpde.data import picture
from depthpde.data.reader import Split, read_manifest, read_split
from depthpde.data.recipes import listops
from depthpde.data.task import TaskKind
from depthpde.data.writer import Array

_BRANCH = "  "


@dataclass(frozen=True, kw_only=True, slots=True)
class Exhibit:
    """What can be shown of one example."""

    index: int
    """Which example of its split."""
    label: str
    """The label in words."""
    length: int
    """Symbols of the example (both documents of a pair)."""
    text: str
    """The example in words; empty for an image."""
    image: Array | None
    """[height, width] grey levels, for an image."""


def exhibit(folder: Path, split: str, index: int, *, depth: int = 3) -> Exhibit:
    """Return one example of a prepared task in readable form.

    Args:
        folder: The prepared task.
        split: ``train``, ``validation`` or ``test``.
        index: Which example.
        depth: Levels of a ListOps tree that are drawn.
    """
    manifest, part = read_manifest(folder), read_split(folder, split)
    if not 0 <= index < len(part):
        raise ValueError(
            f"`index` must lie in 0 … {len(part) - 1}, the examples of {split}, got {index}"
        )
    symbols = _symbols(part, index)
    image = None
    if part.kind is TaskKind.IMAGE:
        image = symbols[0].reshape(manifest["grid"])
    return Exhibit(
        index=index,
        label=_label(manifest, part, index),
        length=sum(len(each) for each in symbols),
        text="" if image is not None else _words(manifest, symbols, depth),
        image=image,
    )


def tree(symbols: Array, depth: int = 3) -> str:
    """Draw a ListOps expression as an indented tree with the value of every node.

    Nodes below ``depth`` levels are closed: only their size and value are shown.
    """
    lines: list[str] = []
    _draw(symbols, 0, 0, depth, lines)
    return "\n".join(lines)


def drawn(image: Array, *, colour: bool) -> str:
    """Draw an image for a terminal, in colour or in plain characters."""
    return picture.in_colour(image) if colour else picture.in_characters(image)


def _draw(symbols: Array, site: int, level: int, depth: int, lines: list[str]) -> int:
    """Draw the node that starts at a site, and return the site after it."""
    end = _end(symbols, site)
    word = listops.WORDS[symbols[site]]
    value = listops.value_of(symbols[site:end])
    if end == site + 1:
        lines.append(f"{_BRANCH * level}{word}")
    elif level == depth:
        lines.append(f"{_BRANCH * level}{word[1:]} of {end - site} symbols = {value}")
    else:
        lines.append(f"{_BRANCH * level}{word[1:]} = {value}")
        inner = site + 1
        while inner < end - 1:
            inner = _draw(symbols, inner, level + 1, depth, lines)
    return end


def _end(symbols: Array, site: int) -> int:
    level = 0
    for each in range(site, len(symbols)):
        symbol = listops.WORDS[symbols[each]]
        level += symbol.startswith("[") - (symbol == "]")
        if level == 0:
            return each + 1
    return len(symbols)


def _symbols(part: Split, index: int) -> list[Array]:
    if part.kind is TaskKind.LANGUAGE:
        start = index * part.length
        return [np.asarray(part.tokens[start : start + part.length])]
    sequences = [index] if part.pairs is None else part.pairs[index].tolist()
    return [
        np.asarray(part.tokens[part.offsets[each] : part.offsets[each + 1]]) for each in sequences
    ]


def _label(manifest: dict[str, Any], part: Split, index: int) -> str:
    if part.labels is None:
        return "the next byte"
    label = int(part.labels[index])
    names = manifest["facts"].get("class_names")
    return f"{label} ({names[label]})" if names else str(label)


def _words(manifest: dict[str, Any], symbols: list[Array], depth: int) -> str:
    if manifest["task"].startswith("listops") and manifest["vocabulary"] < 18:
        return f"{listops.decode(symbols[0])}\n\n{tree(symbols[0], depth)}"
    if manifest.get("protocol") == "s4-2022":
        return "\n\n".join(" ".join(map(str, each.tolist())) for each in symbols)
    return "\n\n--- second document ---\n".join(
        each.tobytes().decode("utf-8", errors="replace") for each in symbols
    )

"""What a run's config says of its model: what is placed where, and what it is compared as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

POSITIONS = {
    "after_embedding": "the embedded field, once, before the first block",
    "before_norm": "the input of each normalization",
    "in_attention": "what attention mixes: the values",
    "in_heads": "each head's output, with its own ratio",
    "after_attention": "the attention increment",
    "after_ffn": "the feed-forward increment",
    "between_blocks": "the stream between blocks",
}
"""The seven positions in the order of the forward pass, and what each acts on."""

DIFFUSIVE = {"diffusion", "adaptive", "multiscale"}
"""Layers that learn a diffusion; every other one is a control."""

SCALES = {"slow": 1, "medium": 4, "fast": 16}
"""Steps of the named scales of a multi-scale diffusion."""


class VariantRole(StrEnum):
    """What a variant is in a comparison; figures tell the roles apart by shape and colour."""

    BASELINE = "baseline"
    OURS = "ours"
    """Diffusion is learned somewhere: in a placed layer, or in the simulator's equation."""
    CONTROL = "control"
    """What diffusion is compared with: another local mixing, or another encoding of sites."""
    OTHER = "other"
    """Anything else that differs from the baseline: no norm, another width."""


@dataclass(frozen=True, slots=True)
class PlacedLayer:
    """One layer at one position."""

    position: str
    kind: str
    """The layer's name."""
    settings: Mapping[str, Any]
    """What the config says of the layer; what it leaves open is not there."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the model a learned ratio lives."""

    block: int
    """−1 before the first block."""
    position: str
    part: str
    """Which of the several layers of the position, such as ``attention``; empty if one."""
    scale: int | None
    """Which member of a multi-scale diffusion."""

    @property
    def words(self) -> str:
        """Name the site as a reader would, blocks counted from 1."""
        block = "" if self.block < 0 else f"block {self.block + 1} · "
        part = f" ({self.part})" if self.part else ""
        scale = "" if self.scale is None else f" · scale {self.scale + 1}"
        return f"{block}{self.position.replace('_', ' ')}{part}{scale}"


def placements(config: Mapping[str, Any]) -> tuple[PlacedLayer, ...]:
    """Read what is placed where from a run's config; what cannot be read is left out.

    Args:
        config: The ``config`` of a record.
    """
    model = _mapping(config.get("model"))
    names = model.get("positions")
    found = []
    for each in names if isinstance(names, list) else []:
        values = each if isinstance(each, Mapping) else {"position": each}
        layer = values.get("layer") or model.get("layer") or "diffusion"
        settings = layer if isinstance(layer, Mapping) else {"kind": layer}
        kind = str(settings.get("kind", "diffusion"))
        found.append(PlacedLayer(str(values.get("position")), kind, settings))
    return tuple(found)


def role_of(config: Mapping[str, Any], baseline: Mapping[str, Any]) -> VariantRole:
    """Describe what a model that is not the baseline is in a comparison with it.

    Args:
        config: The ``config`` of its record.
        baseline: The ``config`` of a record of the baseline.
    """
    placed = placements(config)
    if any(each.kind in DIFFUSIVE for each in placed):
        return VariantRole.OURS
    if _mapping(config.get("simulator")).get("diffusion"):
        return VariantRole.OURS
    models = [_mapping(each.get("model")) for each in (config, baseline)]
    other_encoding = models[0].get("encoding") != models[1].get("encoding")
    return VariantRole.CONTROL if placed or other_encoding else VariantRole.OTHER


def position_of(config: Mapping[str, Any]) -> str | None:
    """Name the one position that diffusion is placed at; None for none, several or a control."""
    placed = placements(config)
    if len(placed) != 1 or placed[0].kind not in DIFFUSIVE:
        return None
    return placed[0].position if placed[0].position in POSITIONS else None


@lru_cache(maxsize=4096)  # the same few names in every record of a grid
def site_of(name: str) -> Site | None:
    """Find where a learned ratio lives from its module's name; None if it tells no position."""
    key = re.search(r"\blayers\.([a-z_]+)", name)
    position = next((each for each in POSITIONS if key and key[1].startswith(each)), None)
    if key is None or position is None:
        return None
    block = re.search(r"\bblocks\.(\d+)\.", name)
    scale = re.search(r"\bmembers\.(\d+)", name)
    return Site(
        int(block[1]) if block else -1,
        position,
        key[1].removeprefix(position).strip("_"),
        int(scale[1]) if scale else None,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

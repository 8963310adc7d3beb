"""What was inserted: it prints itself, keeps its weights and can be taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.files import write_json, write_whole
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.family import Family, Side
from depthpde.insertion.hooks.container import PREFIX, InsertedLayers
from depthpde.insertion.learned import (
    bypassed,
    describe_layers,
    draw_ratios,
    learned_ratios,
)
from depthpde.layers.ratio import BoundedRatio
from depthpde.models.card import write_card
from depthpde.models.hub import push
from depthpde.models.position import Position, Route
from depthpde.models.pretrained import read_weights
from depthpde.operators.diffusion.problem import Problem

CONFIG, WEIGHTS, FORMAT = "insertion.json", "insertion.safetensors", 1
"""The files of a saved insertion, and the version of the first."""


@dataclass(frozen=True, slots=True)
class Match:
    """One place where a layer now acts."""

    name: str
    """The layer's name under the prefix."""
    module: str
    """The module of the model whose input or output it changes."""
    side: Side
    """Which of the two."""
    dim: int
    """Features of the tensor."""


class Insertion:
    """Layers inserted at one position of a model.

    >>> model = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> inserted = dp.insert(model, "after_attention", layer="multiscale")
    >>> path = inserted.save("diffusion.safetensors")

    Args:
        model: The model they were inserted into.
        inserted: The container that holds them.
        position: Where.
        route: On the branch or on the stream.
        matches: Every place.
        family: Of the blocks they act in.
    """

    def __init__(
        self,
        model: nn.Module,
        inserted: InsertedLayers,
        position: Position,
        route: Route,
        matches: Sequence[Match],
        family: Family,
    ) -> None:
        self.model, self.position, self.route, self.family = model, position, route, family
        self.matches = tuple(matches)
        self.layers: dict[str, nn.Module] = {each.name: inserted[each.name] for each in matches}
        self._inserted = inserted
        self._removed = False
        self.name: str | None = None
        """Where several insertions stand side by side at one position."""
        self.recipe: dict[str, Any] = {}
        """What `insert` was called with, so that a saved insertion can make itself again."""

    @property
    def num_parameters(self) -> int:
        """How many parameters were added."""
        return sum(each.numel() for each in self.parameters())

    def parameters(self) -> list[nn.Parameter]:
        """List the added parameters, for an optimizer group of their own."""
        return [each for layer in self.layers.values() for each in layer.parameters()]

    def save(self, path: str | Path) -> None:
        """Write the added weights alone, as safetensors; sharded ones are gathered by all ranks."""
        from safetensors.torch import save

        about = {
            "position": self.position.value,
            "route": self.route.value,
            "layers": self._meaning,
        }
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        whole = {name: _gathered(each) for name, each in self._weights().items()}
        write_whole(Path(path), save(whole, metadata=about))

    def load(self, path: str | Path) -> None:
        """Read added weights that `save` wrote, for the same places and shapes."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"`path` must be a file that save() wrote, got {str(path)!r}")
        own, (given, about) = self._weights(), read_weights(Path(path))
        if any(_is_sharded(each) for each in own.values()):
            raise ValueError(
                "`load` must find whole weights, got sharded ones; load before fully_shard"
            )
        meaning = about.get("layers", self._meaning)
        if set(given) != set(own):
            raise ValueError(
                f"`path` must hold {_some(set(own) - set(given) or own)}, got {_some(given)}; "
                "insert the same layer at the same position, route and blocks first"
            )
        for name, weight in own.items():
            if given[name].shape != weight.shape:
                raise ValueError(
                    f"`path` must hold {name} of shape {list(weight.shape)}, got "
                    f"{list(given[name].shape)}; it was saved from a model of another size"
                )
        if meaning != self._meaning:
            raise ValueError(
                f"`path` must hold weights of {self._meaning}, got those of {meaning}: the same "
                "numbers would mean another layer; insert with the same layer= and initial_ratio="
            )
        with torch.no_grad():
            for name, weight in own.items():
                weight.copy_(given[name])

    @property
    def ratios(self) -> dict[str, Tensor]:
        """What was learned: layer → the ratio of every feature; 0 does nothing."""
        return learned_ratios(self.layers)

    def plot(self, ax: Any = None) -> Any:
        """Draw the ratios by depth into matplotlib axes, and return them.

        Args:
            ax: Where to draw; new axes unless given. Needs the extra ``plot``.
        """
        return draw_ratios(self.ratios, ax)

    def status(self) -> str:
        """Return what each layer has learned, whether it is trained, and whether it is enabled."""
        return describe_layers(self.layers, removed=self._removed)

    def disabled(self) -> AbstractContextManager[None]:
        """Let the layers do nothing inside a ``with`` block: the outputs of the original model."""
        return bypassed(self.layers)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Write the layers and how they were inserted; `insert_from` needs nothing else.

        Args:
            folder: Made if absent.
        """
        if not isinstance(self.recipe.get("layer"), str):
            raise ValueError(
                "`save_pretrained` must have a layer with a name, got one that a function built; "
                "use save(path), and insert with the same function before load(path)"
            )
        place = Path(folder)
        self.save(place / WEIGHTS)
        write_json(place / CONFIG, {"format": FORMAT, "insertion": self.recipe})
        return place

    def push_to_hub(self, name: str, *, card: str | None = None, private: bool = False) -> str:
        """Put what `save_pretrained` writes and a card on the Hugging Face hub; return the address.

        Args:
            name: ``owner/name``; needs the extra ``hf`` and a token of the hub.
            card: Its README; unless given, one that says what was inserted where.
            private: Whether a new repository is hidden from others.
        """
        load = 'inserted = dp.insert_from(model, "owner/name")   # the model it was made for'
        text = card or write_card(self._inserted, about=f"```\n{self}\n```", load=load)
        return push(name, self.save_pretrained, text, private=private)

    def remove(self) -> None:
        """Take the layers out: keys, hooks and outputs are those of the original model again."""
        if self._removed:
            raise ValueError(
                f"the insertion at {self.position.value!r} was removed already; call insert again"
            )
        check_not_compiled(self.model, "removing")
        self._inserted.discard(self.model, self.layers)
        self._removed = True

    @property
    def _meaning(self) -> str:
        """In words, what the weights are read by; layers of one insertion are built alike."""
        first = next(iter(self.layers.values()))
        parts = [type(first).__name__]
        for each in first.modules():
            problem = getattr(each, "problem", None)
            if isinstance(problem, Problem):
                parts.append(f"{problem.scheme.value}, {problem.steps} × {problem.dilation}")
            if isinstance(each, BoundedRatio):
                parts.append(f"ratio up to {each.bound:g} by {each.form}")
        return "; ".join(parts)

    def _weights(self) -> dict[str, Tensor]:
        return {
            f"{PREFIX}.{name}.{key}": value
            for name, layer in self.layers.items()
            for key, value in layer.state_dict().items()
        }

    def __str__(self) -> str:
        """Describe what matched, where, and how much was added."""
        kinds = ", ".join(dict.fromkeys(type(each).__name__ for each in self.layers.values()))
        family, gone = self.family, ", removed" if self._removed else ""
        where = f"{self.position.value} · {self.route.value} · {family.name}, "
        where = f"{family.name}, " if family.single else where + f"{family.norm.value}-norm"
        named = "" if self.name is None else f"{self.name}: "
        head = f"{named}{kinds} · {where.removesuffix(', ')}{gone}"
        wide = max(len(each.module) for each in self.matches)
        rows = [self._row(each, wide) for each in self.matches]
        added, own = self.num_parameters, sum(each.numel() for each in self._own())
        share = f"{100 * added / own:.3g} %" if own else "no parameters of its own"
        return "\n".join((head, *rows, f"{added:,} parameters added to {own:,} ({share})"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self), quote=False)}</pre>"

    def _row(self, match: Match, wide: int) -> str:
        count = sum(each.numel() for each in self.layers[match.name].parameters())
        shape = f"{self.family.layout.words}".replace("features", str(match.dim))
        return f"  {match.module:<{wide}}  {match.side.value:<6}  {shape}  {count:,} parameters"

    def _own(self) -> Iterable[nn.Parameter]:
        return (each for name, each in self.model.named_parameters() if not name.startswith(PREFIX))


def _is_sharded(weight: Tensor) -> bool:
    return hasattr(weight, "full_tensor")


def _gathered(weight: Tensor) -> Tensor:
    """Return a weight whole; of a sharded one every rank must ask."""
    whole: Tensor = weight.full_tensor() if hasattr(weight, "full_tensor") else weight
    return whole


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")

"""What is placed where: the choice of a position for a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from depthpde.config import Settings
from depthpde.errors import check_name, check_one_of
from depthpde.layers.registry import LayerConfig, LayerKind, read_layer
from depthpde.models.position import OPTIONS, ROUTES, Option, Position, Route


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement(Settings):
    """One position with what is placed there. None leaves a choice to the model's config.

    >>> placed = dp.Placement(position="before_norm", route="stream", layer="blur")
    >>> config = dp.ModelConfig(positions=("after_embedding", placed))
    """

    brief: ClassVar[bool] = True

    position: Position | str
    """Where."""
    route: Route | str | None = None
    """On the increment or on the stream."""
    layer: LayerConfig | LayerKind | str | None = None
    """Which layer; a name means that layer with its own defaults."""
    option: Option | str | None = None
    """Which meaning of the position, where it has several."""

    def check(self) -> None:
        """Refuse a route or an option that the position does not have."""
        position = Position(self.position)
        if self.route is not None and self.route not in ROUTES[position]:
            raise ValueError(
                f"`route` must be one of {', '.join(ROUTES[position])} at {position.value!r}, "
                f"got {str(self.route)!r}; leave it out for the default"
            )
        if self.option is not None:
            if position not in OPTIONS:
                raise ValueError(
                    f"`option` must be left out at {position.value!r}, got {str(self.option)!r}; "
                    f"only {', '.join(OPTIONS)} have options"
                )
            check_name("option", str(self.option), OPTIONS[position])
        if self.layer is not None:
            self._set(layer=read_layer(self.layer))


def read_placement(placement: Placement | Position | str | Mapping[str, Any]) -> Placement:
    """Return the placement that a position's name, a mapping or a placement means."""
    if isinstance(placement, Placement):
        return placement
    if isinstance(placement, Mapping):
        return Placement.from_dict(placement, "positions")
    return Placement(position=check_one_of("positions", placement, Position))

"""Motion: which weights updates move, and by how much against their size.

    unmoved     weights that learn and whose entries are what they were at the start
    ratio       ‖w − w_before‖ / ‖w‖ by block, an update

A few thousand entries of each weight are kept, evenly spaced, not the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from depthpde.doctor.checks.components import component_of_weight
from depthpde.doctor.depth_profile import DepthSeries
from depthpde.doctor.model_map import ModelMap, block_of

ENTRIES = 4096
FEWEST = 2
"""Updates before a weight that did not move is named: the first has a rate of zero in a warm-up."""


class Motion:
    """The weights of a model in training, as they were at the start and at the last look.

    Args:
        body: The model.
    """

    def __init__(self, body: ModelMap) -> None:
        self.body = body
        self._group: Callable[[str], str] = block_of(body)
        self._weights = dict(body.model.named_parameters())
        self._start = {name: each.clone() for name, each in self._now().items()}
        self._last, self._updates, self._moved = dict(self._start), 0, False

    def look(self, update: int) -> tuple[dict[str, Any], dict[str, DepthSeries]]:
        """Return what moved since the start, as facts, and since the last look, as a series.

        Args:
            update: How many updates were made since the start.
        """
        now, start = self._now(), self._start
        names = [name for name in now if name in start]
        still = [name for name in names if torch.equal(now[name], start[name])]
        ratios = self.ratios(update)
        self.mark(update)
        facts: dict[str, Any] = {}
        if update >= FEWEST and len(still) < len(names):
            share = len(still) / max(1, len(names))
            component = component_of_weight(self.body, still[0]) if still else ""
            facts["unmoved"] = {
                "names": still, "share": share, "updates": update, "component": component,
            }  # fmt: skip
        if not facts or not ratios:
            return facts, {}
        words = "‖Δw‖ / ‖w‖ of each part, an update"
        labels, values = tuple(ratios), tuple(ratios.values())
        return facts, {"updates.ratio": DepthSeries("updates.ratio", words, labels, values)}

    def ratios(self, update: int) -> dict[str, float]:
        """Return ‖Δw‖ / ‖w‖ of each part since the last mark, an update; nothing before the first.

        Args:
            update: How many updates were made since the start.
        """
        now, since = self._now(), max(1, update - self._updates)
        names = [name for name in now if name in self._last]
        values = [now[name] for name in names]
        # all weights in one call each: many are small, and Python would take longer than they do
        gaps = torch._foreach_norm(torch._foreach_sub(values, [self._last[name] for name in names]))
        moved: dict[str, float] = {}
        size: dict[str, float] = {}
        for name, gap, whole in zip(names, gaps, torch._foreach_norm(values), strict=True):
            part = self._group(name)
            moved[part] = moved.get(part, 0.0) + float(gap) ** 2
            size[part] = size.get(part, 0.0) + float(whole) ** 2
        self._moved = self._moved or any(moved.values())
        if update < FEWEST or not self._moved:
            return {}
        return {part: (moved[part] / max(size[part], 1e-30)) ** 0.5 / since for part in moved}

    def mark(self, update: int) -> None:
        """Keep the weights as they are now, for the next `ratios`.

        Args:
            update: How many updates were made since the start.
        """
        self._last, self._updates = {n: each.clone() for n, each in self._now().items()}, update

    def _now(self) -> dict[str, Tensor]:
        """Return a few entries of each weight that learns."""
        return {
            name: _few(each.detach()) for name, each in self._weights.items() if each.requires_grad
        }


def _few(weight: Tensor) -> Tensor:
    flat = weight.flatten() if weight.is_contiguous() else weight.reshape(-1)
    few = flat[:: max(1, flat.numel() // ENTRIES)]
    return few if few.dtype in (torch.float32, torch.float64) else few.float()

"""Motion: which weights updates move, and by how much against their size.

    unmoved     weights that learn and whose entries are what they were at the start
    ratio       ‖w − w_before‖ / ‖w‖ by block, an update

A few thousand entries of each weight are kept, evenly spaced, not the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

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
        self._start = {name: _few(each).clone() for name, each in _learning(body.model).items()}
        self._last, self._updates = dict(self._start), 0

    def look(self, update: int) -> tuple[dict[str, Any], dict[str, DepthSeries]]:
        """Return what moved since the start, as facts, and since the last look, as a series.

        Args:
            update: How many updates were made since the start.
        """
        now = {name: _few(each) for name, each in _learning(self.body.model).items()}
        names = [name for name, each in now.items() if name in self._last]
        since = max(1, update - self._updates)
        moved: dict[str, float] = {}
        size: dict[str, float] = {}
        for name in names:
            part = self._group(name)
            gap = float((now[name] - self._last[name]).float().square().sum())
            moved[part] = moved.get(part, 0.0) + gap
            size[part] = size.get(part, 0.0) + float(now[name].float().square().sum())
        still = [name for name in names if torch.equal(now[name], self._start[name])]
        facts: dict[str, Any] = {}
        series: dict[str, DepthSeries] = {}
        if update >= FEWEST and len(still) < len(names):
            share = len(still) / max(1, len(names))
            component = component_of_weight(self.body, still[0]) if still else ""
            facts["unmoved"] = {
                "names": still, "share": share, "updates": update, "component": component,
            }  # fmt: skip
            ratios = [(moved[part] / max(size[part], 1e-30)) ** 0.5 / since for part in moved]
            words = "‖Δw‖ / ‖w‖ of each part, an update"
            series["updates.ratio"] = DepthSeries(
                "updates.ratio", words, tuple(moved), tuple(ratios)
            )
        self._last, self._updates = {name: each.clone() for name, each in now.items()}, update
        return facts, series


def _learning(model: nn.Module) -> dict[str, Tensor]:
    return {name: each.detach() for name, each in model.named_parameters() if each.requires_grad}


def _few(weight: Tensor) -> Tensor:
    flat = weight.flatten() if weight.is_contiguous() else weight.reshape(-1)
    return flat[:: max(1, flat.numel() // ENTRIES)]

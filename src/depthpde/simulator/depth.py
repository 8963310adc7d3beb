"""Parameters along depth: one map for all time, one for each layer, or weights in between.

    shared          F(u, t) = F(u; θ)
    per layer       F(u, t) = F(u; θ_l),                                 l ≤ t < l + 1
    interpolated    F(u, t) = F(u; (1 − w) θ_l + w θ_{l+1}),             w = t − l

A Transformer is the second kind, stepped with dt = 1. The third agrees with it at every t = l and
is continuous in time, so that a smaller step has a limit to converge to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from depthpde.shapes import Field, Mask


class Interpolated:
    """Maps of one kind whose weights are interpolated linearly in depth.

        θ(t) = (1 − w) θ_l + w θ_{l+1},    t = start + l + w;    constant beyond the last

    >>> maps = dp.Interpolated([dp.FeedForward(8, 16) for _ in range(3)])
    >>> equation = dp.Equation(reaction=maps)

    Args:
        modules: One for each layer, alike but for their weights.
        start: Time of the first.
        then: Applied to what comes out, such as dropout.
        options: Handed to the map with every field, such as an observer of attention.
    """

    def __init__(
        self,
        modules: Sequence[nn.Module],
        *,
        start: float = 0.0,
        then: Callable[[Field], Field] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if not modules:
            raise ValueError("`modules` must hold at least one module, got none; pass the layers")
        self.modules, self.start, self.then = tuple(modules), start, then
        self.options = dict(options or {})
        first = _shapes(self.modules[0])
        for index, module in enumerate(self.modules):
            if _shapes(module) != first or type(module) is not type(self.modules[0]):
                raise ValueError(
                    "`modules` must be alike but for their weights, got another kind or shape at "
                    f"index {index}; use a sequence of maps, one for each layer"
                )

    def __len__(self) -> int:
        """Count the layers."""
        return len(self.modules)

    def __call__(self, u: Field, t: float, **keywords: Mask) -> Field:
        """Apply the map that stands at time t."""
        change = self._apply(u, t, self.options | keywords)
        return change if self.then is None else self.then(change)

    def _apply(self, u: Field, t: float, keywords: dict[str, Any]) -> Field:
        at = min(max(t - self.start, 0.0), len(self.modules) - 1.0)
        layer, weight = int(at), at - int(at)
        if weight == 0.0:  # at a layer's own time: its own weights, to the bit
            return self.modules[layer](u, **keywords)
        mixed = _mix(self.modules[layer], self.modules[layer + 1], weight)
        return functional_call(self.modules[layer], mixed, (u,), keywords)


def _mix(before: nn.Module, after: nn.Module, weight: float) -> dict[str, Tensor]:
    later = dict(after.named_parameters())
    return {name: each + weight * (later[name] - each) for name, each in before.named_parameters()}


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(each.shape) for name, each in module.named_parameters()}

"""Sample: one training pass listened to, for gradients by depth before anything clips them.

    ‖∂loss/∂u_l‖ on the stream and ‖∂loss/∂w‖ of each block, as the backward pass makes them

Hooks exist for one pass only, and keep norms, not tensors. The call itself (which module, which
arguments) is noted, so that the same batch can be looked at afterwards.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from depthpde.doctor.activations import listening
from depthpde.doctor.depth_profile import DepthSeries, Value, depth_labels, numbers
from depthpde.doctor.model_map import ModelMap, block_of
from depthpde.insertion.recorder import Given


class SamplePoints:
    """Where a training pass is listened to, found once: every sample would walk the model again.

    Args:
        model_map: The model.
    """

    def __init__(self, model_map: ModelMap) -> None:
        self.model_map = model_map
        self.holders = _holders(model_map)
        self.group = block_of(model_map)
        self.weights = dict(model_map.model.named_parameters())


class Sample:
    """Listens to the next training pass.

    Args:
        points: Where it listens.
        stream: Whether to listen to gradients on the stream too, which only a look reads.
    """

    def __init__(self, points: SamplePoints, *, stream: bool) -> None:
        self.points, self.model_map, self.on_stream = points, points.model_map, stream
        model_map = points.model_map
        self.call: tuple[nn.Module, Given] | None = None
        self.sites = (0, 0)
        self._stream: dict[int, Tensor] = {}
        self._weights: dict[str, Tensor] = {}
        self._sizes: dict[int, Tensor] = {}
        self._stack = ExitStack()
        recorder = self._stack.enter_context(listening(model_map, self._hear))
        for module in points.holders:
            recorder.on_call(module, partial(self._note, module))
        for name, weight in points.weights.items():
            if weight.requires_grad:
                hook = weight.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                    _norm_of(self._weights, name, torch.float64 if stream else torch.float32)
                )
                self._stack.callback(hook.remove)

    def close(self) -> None:
        """Take every hook away."""
        self._stack.close()

    def gradients(self) -> dict[str, DepthSeries]:
        """Return the recorded gradients as series; empty where no backward pass ran."""
        blocks = len(self.model_map.blocks)
        found = {}
        if len(self._stream) == blocks + 1:
            norms = [float(self._stream[depth]) for depth in range(blocks + 1)]
            last = norms[-1] or float("nan")
            labels = depth_labels(blocks)
            found["gradient.stream"] = DepthSeries(
                "gradient.stream", "‖∂loss/∂u‖", labels, tuple(norms)
            )
            found["gradient.amplification"] = DepthSeries(
                "gradient.amplification", "‖g_l‖ / ‖g_L‖", labels, tuple(n / last for n in norms)
            )
        if self._weights:
            group, squares = self.points.group, dict[str, float]()
            for name in self.points.weights:
                if name in self._weights:
                    square = float(self._weights[name]) ** 2
                    squares[group(name)] = squares.get(group(name), 0.0) + square
            found["gradient.weights"] = DepthSeries(
                "gradient.weights", "‖∂loss/∂w‖ of each part, before clipping", tuple(squares),
                tuple(each**0.5 for each in squares.values()),
            )  # fmt: skip
        return found

    def readings(self) -> dict[str, float]:
        """Return single numbers by name: gradients by part, and the size of the stream by depth."""
        found = {}
        series = self.gradients().get("gradient.weights")
        if series is not None:
            found = {
                f"gradient of {part}": _single(value)
                for part, value in zip(series.labels, series.values, strict=True)
            }
        for depth, size in sorted(self._sizes.items()):
            where = f"block {depth}" if depth else "embedding"
            found[f"size of the stream after {where}"] = float(size)
        return found

    def _note(self, module: nn.Module, given: Given) -> None:
        if self.call is None:
            self.call = (module, given)

    def _hear(self, depth: int, u: Tensor) -> None:
        if depth == 0 and self.sites == (0, 0):  # of the call that was noted, not of later ones
            shape = self.model_map.layout().field(u).shape
            self.sites = (shape[0], shape[1])
        if depth not in self._sizes:
            self._sizes[depth] = vector_norm(u.detach(), dtype=torch.float32)
        if self.on_stream and u.requires_grad and depth not in self._stream:
            self._stream[depth] = torch.zeros(())

            def note(gradient: Tensor) -> None:
                self._stream[depth] = vector_norm(gradient, dtype=torch.float64)

            u.register_hook(note)  # type: ignore[no-untyped-call]


def _single(value: Value) -> float:
    return numbers(value)[0]


def _norm_of(into: dict[str, Tensor], name: str, least: torch.dtype) -> Any:
    """Give the hook that notes a gradient's norm; float32 is a third of the time, up to 1e19."""

    def hook(weight: Tensor) -> None:
        if weight.grad is not None:
            dtype = torch.promote_types(weight.grad.dtype, least)
            into[name] = vector_norm(weight.grad, dtype=dtype)

    return hook


def _holders(model_map: ModelMap) -> list[nn.Module]:
    """List the modules that hold every block; the first that is called is the one to call again."""
    blocks = {id(block.scope) for block in model_map.blocks}
    return [
        module
        for module in model_map.model.modules()
        if blocks <= {id(each) for each in module.modules()} and _can_be_called(module)
    ]


def _can_be_called(module: nn.Module) -> bool:
    return not isinstance(module, nn.ModuleList | nn.ModuleDict)

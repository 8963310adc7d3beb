"""What inserted layers have learned: their ratios as numbers, as a picture, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from depthpde.layers.ratio import BoundedRatio

INK, GREY = "#0b62c4", "#717a85"


def learned_ratios(layers: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Return the ratios of every layer that has any, by its name; one a scale where it has several.

    Args:
        layers: The inserted layers, in the order of depth.
    """
    found = {}
    for name, layer in layers.items():
        inside = {n: each for n, each in layer.named_modules() if isinstance(each, BoundedRatio)}
        for inner, ratio in inside.items():
            several = f" {inner}" if len(inside) > 1 else ""
            found[f"{name}{several}"] = ratio().detach().flatten().cpu()
    return found


def draw_ratios(ratios: Mapping[str, Tensor], ax: Any = None) -> Any:
    """Draw one row a layer: every feature a tick, their mean a disc.

    Args:
        ratios: What `learned_ratios` gave.
        ax: matplotlib axes; new ones unless given.

    Returns:
        The axes.
    """
    if not ratios:
        raise ValueError(
            "`plot` must have ratios to draw, got none; insert diffusion, adaptive or multiscale"
        )
    if ax is None:
        ax = _new_axes(len(ratios))
    for row, values in enumerate(ratios.values()):
        ax.plot(values, [row] * len(values), "|", color=INK, alpha=0.4, markersize=12)
        ax.plot(float(values.mean()), row, "o", color=INK)
    ax.set_yticks(range(len(ratios)), list(ratios))
    ax.invert_yaxis()  # depth goes down the page
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set(xlabel="ratio r", title="learned ratios by depth")
    return ax


def describe_layers(layers: Mapping[str, nn.Module], *, removed: bool = False) -> str:
    """Return a table: layer, mean and ends of its ratios, trained or frozen, enabled or not.

    A layer whose ratios are all zero hands on what comes in; its row ends with "the identity".

    Args:
        layers: The inserted layers.
        removed: Whether they were taken out.
    """
    ratios = learned_ratios(layers)
    wide = max(len(name) for name in layers)
    lines = []
    for name, layer in layers.items():
        values = [each for key, each in ratios.items() if key.split(" ")[0] == name]
        shown, identity = "no ratio", False
        if values:
            low, high = (min(float(v.min()) for v in values), max(float(v.max()) for v in values))
            mean = sum(float(v.mean()) for v in values) / len(values)
            shown, identity = f"r {mean:.4f} [{low:.4f}, {high:.4f}]", low == high == 0.0
        trained = any(each.requires_grad for each in layer.parameters())
        state = "removed" if removed else ("disabled" if _is_bypassed(layer) else "enabled")
        state += ", the identity" if identity and state == "enabled" else ""
        lines.append(f"{name:<{wide}}  {shown:<28}  {'trained' if trained else 'frozen'}  {state}")
    return "\n".join(lines)


@contextmanager
def bypassed(layers: Mapping[str, nn.Module]) -> Iterator[None]:
    """Let layers hand on what comes in, to the bit, until the block ends.

    Args:
        layers: The inserted layers; every one is called with the field first.
    """
    handles = [each.register_forward_hook(_hand_on) for each in layers.values()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hand_on(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
    return args[0]


def _is_bypassed(layer: nn.Module) -> bool:
    return _hand_on in layer._forward_hooks.values()


def _new_axes(rows: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError(
            "`plot` must find matplotlib, which is not installed; use pip install 'depthpde[plot]'"
        ) from error
    figure = Figure(figsize=(6, 1.2 + 0.35 * rows), layout="constrained")
    return figure.subplots()  # no window, no global state

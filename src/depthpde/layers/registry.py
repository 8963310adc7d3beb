"""The registry of layers: one list of kinds, one config, one builder, for models and insertion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar

from torch import nn

from depthpde.config import Positive, Settings, check_keys
from depthpde.errors import check_one_of, check_range
from depthpde.layers.controls import Blur, DepthwiseConv, ExponentialAverage, Start, TokenShift
from depthpde.layers.diffusion import AdaptiveDiffusion, Diffusion, choose_scheme
from depthpde.layers.multiscale import DiffusionScale, MultiscaleDiffusion, read_scales
from depthpde.layers.ratio import Per, layer_bound
from depthpde.layers.rivals import Canon, Smear
from depthpde.layers.stencil import LearnedStencil, TapBound
from depthpde.operators.boundary import Boundary
from depthpde.operators.stability import Scheme


class LayerKind(StrEnum):
    """Which layer is placed."""

    DIFFUSION = "diffusion"
    ADAPTIVE = "adaptive"
    MULTISCALE = "multiscale"
    DEPTHWISE_CONV = "depthwise_conv"
    BLUR = "blur"
    EXPONENTIAL_AVERAGE = "exponential_average"
    TOKEN_SHIFT = "token_shift"
    LEARNED_STENCIL = "learned_stencil"
    CANON = "canon"
    SMEAR = "smear"


KINDS: dict[LayerKind, tuple[type[nn.Module], dict[str, str]]] = {
    LayerKind.DIFFUSION: (
        Diffusion,
        {
            "scheme": "scheme",
            "steps": "steps",
            "dilation": "dilation",
            "boundary": "boundary",
            "bound": "bound",
            "per": "per",
            "initial_ratio": "initial_ratio",
        },
    ),
    LayerKind.ADAPTIVE: (
        AdaptiveDiffusion,
        {"steps": "steps", "bound": "bound", "initial_ratio": "initial_ratio"},
    ),
    LayerKind.MULTISCALE: (
        MultiscaleDiffusion,
        {
            "scales": "scales",
            "gated": "gated",
            "scheme": "scheme",
            "bound": "bound",
            "initial_ratio": "initial_ratio",
        },
    ),
    LayerKind.DEPTHWISE_CONV: (
        DepthwiseConv,
        {"width": "width", "start": "start", "initial_ratio": "start_ratio"},
    ),
    LayerKind.BLUR: (Blur, {"steps": "steps", "initial_ratio": "ratio"}),
    LayerKind.EXPONENTIAL_AVERAGE: (ExponentialAverage, {"initial_ratio": "initial_memory"}),
    LayerKind.TOKEN_SHIFT: (TokenShift, {"initial_ratio": "initial_ratio"}),
    LayerKind.LEARNED_STENCIL: (
        LearnedStencil,
        {"steps": "reach", "start": "start", "initial_ratio": "start_ratio", "taps": "bound"},
    ),
    LayerKind.CANON: (Canon, {"initial_ratio": "initial_ratio"}),
    LayerKind.SMEAR: (Smear, {"initial_ratio": "initial_ratio"}),
}
"""The class of every kind, and which settings it takes under which name."""
PLANE_KINDS = (LayerKind.DIFFUSION, LayerKind.MULTISCALE, LayerKind.LEARNED_STENCIL)
"""Kinds that act over the plane of an image; the others act along its rows."""
CAUSAL_KINDS = frozenset((LayerKind.TOKEN_SHIFT, LayerKind.CANON, LayerKind.SMEAR))
"""Kinds that look back wherever they stand."""
FIXED_KINDS = frozenset((LayerKind.BLUR, LayerKind.EXPONENTIAL_AVERAGE))
"""Kinds that are never the identity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerConfig(Settings):
    """A layer and its settings. None leaves a setting to the layer's own default.

    >>> layer = dp.LayerConfig(kind="diffusion", steps=2, bound=0.5)
    >>> config = dp.ModelConfig(positions=("after_embedding",), layer=layer)
    """

    brief: ClassVar[bool] = True

    kind: LayerKind | str = LayerKind.DIFFUSION
    """Which layer."""
    initial_ratio: float | None = None
    """Where the ratio starts; the fixed ratio of a blur, the memory of an average."""
    bound: float | None = None
    """Largest ratio that can be learned."""
    steps: Positive | None = None
    """PDE steps of one call."""
    scheme: Scheme | str | None = None
    """What one step does."""
    dilation: Positive | None = None
    """Distance between the sites that exchange."""
    boundary: Boundary | str | None = None
    """What the ends of the sequence see."""
    per: Per | str | None = None
    """One ratio per feature, head, or one for all."""
    scales: str | Sequence[DiffusionScale] | None = None
    """Members of a multi-scale diffusion."""
    gated: bool | None = None
    """Whether a site's content weighs the scales."""
    width: Positive | None = None
    """Taps of a convolution."""
    start: Start | str | None = None
    """What a convolution does before it has learned."""
    taps: TapBound | str | None = None
    """What keeps a learned stencil from amplifying; "free" for nothing."""

    def check(self) -> None:
        """Refuse a setting that the layer does not take."""
        for name, number in (("initial_ratio", self.initial_ratio), ("bound", self.bound)):
            if number is not None:
                check_range(name, number, 0.0, 1e6)
        if self.scales is not None and not isinstance(self.scales, str):
            members = (
                each
                if isinstance(each, DiffusionScale)
                else DiffusionScale(**check_keys("scales", DiffusionScale, each))
                for each in self.scales
            )
            self._set(scales=tuple(members))
        if self.scales is not None:
            read_scales(self.scales)
        takes = KINDS[LayerKind(self.kind)][1]
        for name, value in self.settings().items():
            if value is not None and name not in takes:
                raise ValueError(
                    f"`{name}` must be left out for the layer {str(self.kind)!r}, got {value!r}; "
                    f"it takes {', '.join(takes)}"
                )

    def settings(self) -> dict[str, Any]:
        """Return every setting but the kind."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "kind"}


def read_layer(layer: LayerConfig | LayerKind | str | Mapping[str, Any]) -> LayerConfig:
    """Return the config that a name, a mapping or a config means."""
    if isinstance(layer, LayerConfig):
        return layer
    if isinstance(layer, Mapping):
        return LayerConfig.from_dict(layer, "layer")
    return LayerConfig(kind=check_one_of("layer", layer, LayerKind))


def initial_ratio(layer: LayerConfig, *, causal: bool, dimensions: int = 1) -> float:
    """Return where the ratio of a layer starts, its own default included."""
    if layer.initial_ratio is not None:
        return layer.initial_ratio
    if layer.kind in (LayerKind.DIFFUSION, LayerKind.ADAPTIVE, LayerKind.MULTISCALE):
        scheme = choose_scheme(layer.scheme, causal=causal)
        return layer_bound(scheme, layer.bound, dimensions) / 2
    if layer.kind in (LayerKind.EXPONENTIAL_AVERAGE, LayerKind.TOKEN_SHIFT):
        return 1 / 4
    if layer.kind in (LayerKind.CANON, LayerKind.SMEAR):
        return 0.0
    heats = layer.kind in (LayerKind.BLUR, LayerKind.LEARNED_STENCIL)
    return 1 / 4 if causal and heats else 1 / 8


def build_layer(
    layer: LayerConfig,
    dim: int,
    *,
    causal: bool = False,
    grid: tuple[int, int] | None = None,
    gain: float = 1.0,
    num_heads: int | None = None,
) -> nn.Module:
    """Build the layer of a config.

    Args:
        layer: Which, and its settings.
        dim: Features of the field it acts on.
        causal: Never show a site its future.
        grid: Height and width, for diffusion over a plane.
        gain: Multiplies the initial ratio.
        num_heads: Where given, one ratio a head by default.
    """
    made, takes = KINDS[LayerKind(layer.kind)]
    given = {name: value for name, value in layer.settings().items() if value is not None}
    if gain != 1.0:
        dimensions = 1 if grid is None else 2
        start = initial_ratio(layer, causal=causal, dimensions=dimensions)
        given["initial_ratio"] = gain * start
        if layer.kind is LayerKind.MULTISCALE and layer.initial_ratio is None:
            given["scales"] = [
                replace(each, initial_ratio=gain * (each.initial_ratio or start))
                for each in read_scales(layer.scales or "fast medium slow")
            ]
            del given["initial_ratio"]
    settings = {takes[name]: value for name, value in given.items()}
    if layer.kind not in CAUSAL_KINDS:
        settings["causal"] = causal
    if layer.kind is LayerKind.DIFFUSION and num_heads is not None:
        settings["num_heads"] = num_heads
        settings.setdefault("per", Per.HEAD)
    if grid is not None:
        if layer.kind not in PLANE_KINDS:
            raise ValueError(
                f"`geometry` must be 'line' or 'rows' for the layer {str(layer.kind)!r}, got "
                f"'plane'; only {', '.join(PLANE_KINDS)} know two dimensions"
            )
        settings["grid"] = grid
    return made(dim, **settings)

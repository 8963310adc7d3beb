"""What a model costs, by formula: parameters, multiply–adds and memory, term by term."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import StrEnum

from depthpde.errors import check_one_of, check_positive
from depthpde.layers.diffusion import choose_scheme
from depthpde.layers.embedding import Encoding, InputKind
from depthpde.layers.multiscale import read_scales
from depthpde.layers.pooling import Pooling
from depthpde.layers.ratio import Per
from depthpde.layers.reaction import Activation
from depthpde.layers.registry import LayerConfig, LayerKind
from depthpde.layers.rivals import CANON_WIDTH
from depthpde.layers.stabilizer import Norm, NormKind
from depthpde.models.config import Interaction, ModelConfig, ResolvedPlacement, check_config
from depthpde.models.placed import POSITIVE_SCHEMES
from depthpde.models.position import Option, Position
from depthpde.operators.boundary import Boundary
from depthpde.operators.fused_attention import LONGEST, fits_registers
from depthpde.operators.stability import Scheme

_BYTES = 4
"""Of one number in float32."""


class Head(StrEnum):
    """The part behind the encoder."""

    CLASSIFIER = "classifier"
    LANGUAGE = "language"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """One quantity, split by the term of the equation it belongs to."""

    embedding: int = 0
    """What comes in, and how sites are distinguished."""
    interaction: int = 0
    """Attention."""
    reaction: int = 0
    """Feed-forward."""
    stabilizer: int = 0
    """Norms and residual steps."""
    placed: int = 0
    """Diffusion, or whatever is placed instead."""
    head: int = 0
    """What makes an answer of the field."""

    @property
    def total(self) -> int:
        """The sum over terms."""
        return sum(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one model costs."""

    parameters: Terms
    """Learned numbers."""
    multiply_adds: Terms
    """Of one forward pass over a batch; attention counted in full, causal or not."""
    activation_bytes: Terms
    """Kept from forward for backward, in float32, parameters and loss not counted."""

    def __str__(self) -> str:
        """Return a table, one term a line."""
        lines = [f"{'':12}{'parameters':>14}{'multiply–adds':>18}{'activations':>16}"]
        for name in [each.name for each in fields(Terms)] + ["total"]:
            a, b, c = (
                getattr(each, name)
                for each in (self.parameters, self.multiply_adds, self.activation_bytes)
            )
            lines.append(f"{name:12}{a:>14,}{b:>18,}{c / 2**20:>13,.2f} MB")
        return "\n".join(lines)


def cost(
    config: ModelConfig,
    *,
    batch: int = 1,
    length: int | None = None,
    head: Head | str = Head.CLASSIFIER,
) -> Cost:
    """Describe what a model costs without building it.

        parameters   exact
        operations   4 n d² + 2 n² d a block for attention, 2 n d h for the feed-forward, …
        memory       what autograd keeps on a CPU for sequences without padding

    >>> config = dp.ModelConfig(vocabulary=257, length=64, classes=2)
    >>> print(dp.cost(config, batch=8))   # doctest: +SKIP

    Args:
        config: The model's config, with its sizes known.
        batch: Examples in a batch.
        length: Sites of every sequence; the longest unless given.
        head: The part behind the encoder.
    """
    head = check_one_of("head", head, Head)
    check_config(config)
    known = ("length",) if config.input is InputKind.PATCH else ("length", "vocabulary")
    config.check_complete(*known, *(("classes",) if head is Head.CLASSIFIER else ()))
    sites = (
        check_positive("length", (config.length or 0) if length is None else length) + config.prefix
    )
    documents = config.documents if head is Head.CLASSIFIER else 1
    rows = check_positive("batch", batch) * documents
    return Cost(
        parameters=_parameters(config, head),
        multiply_adds=_multiply_adds(config, head, rows, sites),
        activation_bytes=_activation_bytes(config, head, rows, sites),
    )


def _parameters(config: ModelConfig, head: Head) -> Terms:
    dim, hidden, blocks = config.dim, config.hidden_dim, config.blocks
    tables = 0
    if config.encoding is Encoding.LEARNED:
        tables = ((config.length or 0) + config.prefix) * dim
    return Terms(
        embedding=_entry(config) * dim + tables + config.prefix * dim,
        interaction=blocks
        * _mixing(
            config,
            attention=4 * (dim * dim + dim),
            lstm=2 * (8 * dim * dim + 8 * dim) + 2 * dim * dim + dim,
            convolution=2 * (9 * dim * dim + dim),
        ),
        reaction=blocks * (2 * dim * hidden + hidden + dim),
        stabilizer=_norms(config) * dim * (2 if config.stability.kind is NormKind.LAYER else 1),
        placed=sum(
            count * _layer_parameters(each.layer, features, each, config)
            for each, count, features, _ in _placed(config, 1, 1)
        ),
        head=_head_parameters(config, head),
    )


def _multiply_adds(config: ModelConfig, head: Head, rows: int, sites: int) -> Terms:
    dim, hidden, blocks = config.dim, config.hidden_dim, config.blocks
    entries = (sites - config.prefix) * dim
    answer = {Head.NONE: 0, Head.LANGUAGE: rows * sites * dim * (config.vocabulary or 0)}
    examples = rows // config.documents
    if head is Head.CLASSIFIER:
        classes = config.classes or 0
        one, two = dim * classes, (4 * dim + classes) * hidden
        answer[head] = examples * (two if config.documents == 2 else one)
    taken_in = {
        InputKind.TOKEN: 0,
        InputKind.LINEAR: config.channels * entries,
        InputKind.PATCH: config.patch**2 * config.channels * entries,
    }
    return Terms(
        embedding=rows * taken_in[InputKind(config.input)],
        interaction=rows
        * blocks
        * _mixing(
            config,
            attention=4 * sites * dim**2 + 2 * sites**2 * dim,
            lstm=18 * sites * dim**2,
            convolution=18 * sites * dim**2,
        ),
        reaction=rows * blocks * 2 * sites * dim * hidden,
        placed=sum(
            count * size * _layer_operations(each.layer, config, sites)
            for each, count, _, size in _placed(config, rows, sites)
        ),
        head=answer[head],
    )


def _activation_bytes(config: ModelConfig, head: Head, rows: int, sites: int) -> Terms:
    blocks, kept_field = config.blocks, rows * sites * config.dim
    pairs = rows * config.heads * sites**2
    # q, k, v, the heads' outputs, the logarithm of each row's sum
    mixed = 4 * kept_field + rows * config.heads * sites
    weighted = any(
        each.option is Option.WEIGHTS and not _acts_on_values(each, config)
        for each in config.placements
    )
    if weighted or config.attention_dropout:
        mixed += (4 if weighted else 3) * pairs
    if config.encoding is Encoding.ROTARY:
        # torch's own attention keeps a copy of what was turned
        ours = fits_registers(config.head_dim, sites) and sites <= LONGEST
        mixed += 2 * sites * config.head_dim + (0 if ours else kept_field)
    bends = 1 if config.activation is Activation.RELU else 2
    return Terms(
        embedding=_embedding_bytes(config, rows, sites),
        # Each term keeps its own input; a norm keeps the field it reads and its moments. An LSTM
        # keeps what torch's library works in, about 15 fields each way, and its states.
        interaction=_BYTES
        * blocks
        * _mixing(
            config, attention=mixed + kept_field, lstm=38 * kept_field, convolution=3 * kept_field
        ),
        reaction=_BYTES * blocks * (bends * rows * sites * config.hidden_dim + kept_field),
        stabilizer=_stabilizer_bytes(config, rows, sites),
        placed=_BYTES
        * sum(
            count * _layer_kept(each.layer, config, size, rows, sites)
            for each, count, _, size in _placed(config, rows, sites)
        ),
        head=_BYTES * _head_kept(config, head, rows, kept_field),
    )


def _mixing(config: ModelConfig, *, attention: int, lstm: int, convolution: int) -> int:
    """Return the number that belongs to what mixes the sites of a block."""
    others = {Interaction.LSTM: lstm, Interaction.CONVOLUTION: convolution}
    return attention if config.interaction is None else others[Interaction(config.interaction)]


def _entry(config: ModelConfig) -> int:
    """Return the rows of the matrix or table that takes the input in, bias included."""
    if config.input is InputKind.TOKEN:
        return config.vocabulary or 0
    side = 1 if config.input is InputKind.LINEAR else config.patch
    return side**2 * config.channels + 1


def _norms(config: ModelConfig) -> int:
    norm = config.stability.norm
    return 0 if norm is Norm.NONE else 2 * config.blocks + int(norm is Norm.PRE)


def _head_parameters(config: ModelConfig, head: Head) -> int:
    dim, hidden, classes = config.dim, config.hidden_dim, config.classes or 0
    if head is not Head.CLASSIFIER:
        return 0
    if config.documents == 1:
        return dim * classes + classes
    return 4 * dim * hidden + hidden + hidden * classes + classes


def _embedding_bytes(config: ModelConfig, rows: int, sites: int) -> int:
    inner = rows * (sites - config.prefix)
    if config.input is InputKind.TOKEN:
        return 8 * inner
    return _BYTES * inner * (_entry(config) - 1)


def _stabilizer_bytes(config: ModelConfig, rows: int, sites: int) -> int:
    layered = config.stability.kind is NormKind.LAYER
    field = rows * sites * config.dim
    # Layer norm: its input, mean and deviation. RMS norm: its input, the scaled one and one moment.
    each = (field + 2 * rows * sites) if layered else (2 * field + rows * sites)
    # Dropout keeps nothing: its mask is a function of one seed (`layers.dropout`).
    return _BYTES * _norms(config) * each


def _head_kept(config: ModelConfig, head: Head, rows: int, field: int) -> int:
    vectors = rows * config.dim
    if head is Head.LANGUAGE:
        return field
    if head is Head.NONE:
        return 0
    pooled = {Pooling.MEAN: vectors, Pooling.MAX: field + vectors, Pooling.CLS: field}
    compared = rows // 2 * (4 * config.dim + 2 * config.hidden_dim) if config.documents == 2 else 0
    return pooled[Pooling(config.pooling)] + compared


def _placed(
    config: ModelConfig, rows: int, sites: int
) -> list[tuple[ResolvedPlacement, int, int, int]]:
    """Return for each placement how many layers it makes, their features, and entries of each."""
    found = []
    for each in config.placements:
        count = 1 if each.position is Position.AFTER_EMBEDDING else config.blocks
        features, size = config.dim, rows * sites * config.dim
        if each.position is Position.BEFORE_NORM:
            count *= 2
        elif each.option is Option.QUERIES_KEYS_VALUES:
            count *= 3
        elif each.option is Option.QUERIES_KEYS:
            count *= 2
        elif each.option is Option.WEIGHTS:
            features = config.heads
            if not _acts_on_values(each, config):
                size = rows * config.heads * sites**2
        elif each.option is Option.ACROSS_HEADS:
            features = config.head_dim
        found.append((each, count, features, size))
    return found


def _acts_on_values(each: ResolvedPlacement, config: ModelConfig) -> bool:
    """Return whether a layer on the weights is computed on the values; see `AlongKeys`."""
    layer, hidden = each.layer, config.causal or config.attention_dropout > 0
    if hidden or layer.gated or layer.kind not in _SYMMETRIC_KINDS:
        return False
    scheme = choose_scheme(layer.scheme, causal=False)
    return scheme in POSITIVE_SCHEMES and layer.boundary != Boundary.FIXED


_SYMMETRIC_KINDS = (LayerKind.DIFFUSION, LayerKind.BLUR, LayerKind.MULTISCALE)


def _layer_parameters(
    layer: LayerConfig, features: int, placement: ResolvedPlacement, config: ModelConfig
) -> int:
    if layer.kind is LayerKind.DIFFUSION:
        by_head = placement.option is Option.ALONG_SITES
        per = layer.per or (Per.HEAD if by_head else Per.FEATURE)
        heads = config.heads if by_head else 1
        return {Per.FEATURE: features, Per.HEAD: heads, Per.SCALAR: 1}[Per(per)]
    if layer.kind is LayerKind.MULTISCALE:
        scales = len(_scales(layer))
        return scales * (features + 1) + (scales * features if layer.gated else 0)
    if layer.kind is LayerKind.DEPTHWISE_CONV:
        return _width(layer) * features
    if layer.kind is LayerKind.LEARNED_STENCIL:
        return _filter_taps(layer.steps or 16, config) * features
    if layer.kind is LayerKind.CANON:
        return CANON_WIDTH * features
    if layer.kind in (LayerKind.ADAPTIVE, LayerKind.SMEAR):
        return features + 1
    return 0 if layer.kind is LayerKind.BLUR else features


def _layer_operations(layer: LayerConfig, config: ModelConfig, sites: int) -> int:
    """Return multiply–adds for each entry of the field."""
    if layer.kind is LayerKind.DEPTHWISE_CONV:
        return _width(layer)
    if layer.kind is LayerKind.EXPONENTIAL_AVERAGE:
        return (1 if config.causal else 2) * 2 * max(1, math.ceil(math.log2(sites)))
    if layer.kind is LayerKind.TOKEN_SHIFT:
        return 2
    if layer.kind is LayerKind.CANON:
        return CANON_WIDTH
    if layer.kind is LayerKind.SMEAR:  # the gate and the sum
        return 2
    if layer.kind is LayerKind.LEARNED_STENCIL:
        return _filter_taps(layer.steps or 16, config) * (1 if config.plane is None else 2)
    if _are_filters(layer, config) and layer.gated:  # every scale, its share, the gate
        return sum(_filter_taps(steps, config) + 3 for steps in _scales(layer))
    if _are_filters(layer, config):
        return _filter_taps(max(_scales(layer)), config)
    taps = {
        Scheme.EXPLICIT: 3 if config.plane is None else 5,
        Scheme.UPWIND: 2,
        Scheme.BACKWARD_EULER: 5,
        Scheme.CRANK_NICOLSON: 8,
        Scheme.EXACT: 2 * max(1, math.ceil(math.log2(sites))),
    }[choose_scheme(layer.scheme, causal=config.causal)]
    if layer.kind is LayerKind.MULTISCALE:
        gate = len(_scales(layer)) if layer.gated else 0
        return sum(taps * steps + 2 for steps in _scales(layer)) + gate
    # The content-dependent ratio needs the squared difference across every edge.
    return taps * (layer.steps or 1) + (2 if layer.kind is LayerKind.ADAPTIVE else 0)


def _layer_kept(layer: LayerConfig, config: ModelConfig, size: int, rows: int, sites: int) -> int:
    """Return how many numbers a layer keeps for backward, given the size of its field."""
    if layer.kind is LayerKind.MULTISCALE and not _are_filters(layer, config):
        return (1 + len(_scales(layer))) * size
    features = size // (rows * sites)
    if _are_filters(layer, config):  # the taps are kept in float64; gated, those of every scale
        taps, scales = _filter_taps(max(_scales(layer)), config) * features, len(_scales(layer))
        weights = scales * rows * sites if layer.gated else 0
        return size + weights + 2 * taps * (scales if layer.gated else 1)
    if layer.kind is LayerKind.LEARNED_STENCIL:
        taps = _filter_taps(layer.steps or 16, config) * features
        return taps + size * (1 if config.plane is None else 2)
    if layer.kind is LayerKind.DEPTHWISE_CONV:
        return _width(layer) * size
    if layer.kind is LayerKind.ADAPTIVE:
        return size + 2 * rows * sites
    if layer.kind is LayerKind.SMEAR:  # the field, its later sites side by side, the gate
        return 2 * size + 2 * rows * sites
    return size


def _filter_taps(reach: int, config: ModelConfig) -> int:
    return reach + 1 if config.causal else 2 * reach + 1


def _are_filters(layer: LayerConfig, config: ModelConfig) -> bool:
    """Return whether all scales of a layer are one pass over memory; see `MultiscaleDiffusion`."""
    return (
        layer.kind is LayerKind.MULTISCALE
        and config.plane is None
        and choose_scheme(layer.scheme, causal=config.causal) in (Scheme.EXPLICIT, Scheme.UPWIND)
        and all(each.dilation == 1 for each in read_scales(layer.scales or "fast medium slow"))
    )


def _scales(layer: LayerConfig) -> list[int]:
    return [each.steps for each in read_scales(layer.scales or "fast medium slow")]


def _width(layer: LayerConfig) -> int:
    return layer.width or 3

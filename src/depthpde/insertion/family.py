"""A family of models, described by data: where each part of a block is, and how it is called.

An adapter for an unknown family is one `Family` of a few lines; see docs/insertion.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce

from torch import nn

from depthpde.insertion.layout import FieldLayout
from depthpde.models.position import Position


class Side(StrEnum):
    """Whether a tensor enters or leaves a module."""

    INPUT = "input"
    OUTPUT = "output"


class NormOrder(StrEnum):
    """Where a block normalizes.

    >>> dp.NormOrder("pre") is dp.NormOrder.PRE
    True
    """

    PRE = "pre"
    """u ← u + F(LN u)"""
    POST = "post"
    """u ← LN(u + F(u))"""


@dataclass(frozen=True, slots=True)
class Tap:
    """One tensor of a block: what enters or leaves one of its modules."""

    path: str
    """The module inside the block, as `get_submodule` takes it; "" is the block itself."""
    side: Side
    """Whether the tensor enters or leaves it."""
    argument: int = 0
    """Which argument of the module's forward, if it enters."""
    part: tuple[int, int] = (0, 1)
    """(k, count): the k-th of `count` equal parts of the features, as in a fused q, k, v."""


def into(path: str, argument: int = 0) -> Tap:
    """Name the tensor that enters a module.

    >>> heads = dp.into("attn.out")   # what enters the output projection
    """
    return Tap(path, Side.INPUT, argument)


def out_of(path: str, part: tuple[int, int] = (0, 1)) -> Tap:
    """Name the tensor that leaves a module (the first one, if it returns several).

    >>> values = dp.out_of("attn.qkv", part=(2, 3))   # the third of three parts
    """
    return Tap(path, Side.OUTPUT, part=part)


@dataclass(frozen=True, slots=True)
class Padding:
    """Which argument of the block's forward, or the model's, tells real tokens from padding.

    >>> padding = dp.Padding("key_padding_mask", keep=False)   # True stands for padding there
    """

    argument: str
    """Its name."""
    keep: bool = True
    """Whether True (1, or 0.0 in an additive mask) stands for a real token or for padding."""
    of_model: bool = False
    """Whether it is an argument of the model's own forward, where blocks are not given it."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Which argument of the block's forward, or the model's, carries what earlier calls left."""

    argument: str
    """Its name."""
    index: str = ""
    """Attribute of the block with its number in a cache that `get_seq_length` is asked of."""
    refusal: str = ""
    """Why a cache cannot be continued; empty if it can."""
    of_model: bool = False
    """Whether it is an argument of the model's own forward, where blocks are not given it."""


@dataclass(frozen=True, slots=True)
class Plane:
    """How the sites of a vision model lie."""

    prefix: int
    """Tokens before the patches that are no patch (class token, registers): left alone."""
    grid: tuple[int, int]
    """Height and width in patches."""


@dataclass(frozen=True, slots=True)
class BlockParts:
    """One block of a model."""

    parts: nn.Module
    """Holds the modules that the family's paths name."""
    scope: nn.Module
    """The module whose call brings the padding mask and the cache."""
    dim: int = 0
    """Features of the stream, where a run has told."""
    turns: tuple[int, ...] = ()
    """At which depths the block runs, where a run has told: several if it runs many times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Where the positions are in a family of models.

    >>> mine = dp.Family(name="mine", norm=dp.NormOrder.PRE, norms=("norm_a", "norm_b"),
    ...                  attention=dp.out_of("attn"), ffn=dp.out_of("mlp"), width="attn.q")
    """

    name: str
    """What a person calls it."""
    norm: NormOrder
    """Where its blocks normalize."""
    norms: tuple[str, ...]
    """The normalizations on the stream, in order of execution."""
    attention: Tap | None
    """The attention increment, as it is added to the stream; None if no module shows it."""
    ffn: Tap | None
    """The feed-forward increment, as it is added to the stream; None if no module shows it."""
    width: str = ""
    """A linear map that reads the stream: it tells the number of features."""
    values: Tap | None = None
    """What attention mixes; None if no module boundary shows it."""
    heads: Tap | None = None
    """The heads' outputs side by side, before the output projection."""
    num_heads: str = ""
    """Attribute of the block with the number of heads."""
    causal: bool | str | None = None
    """Whether a site must not see its future, or the block's attribute that says so (a block
    without that attribute counts as causal, the safe side, unless the caller says it is not).
    None: it is found out by running a tiny input, and must be stated where none can be run."""
    padding: Padding | None = None
    """Where the padding mask is; None if the family has no padding."""
    cache: Cache | None = None
    """Where the cache of generation is; None if the family has none."""
    causal_arguments: tuple[str, ...] = ()
    """Arguments of the block's forward that ask for causal attention in one call."""
    entry: Tap = field(default_factory=lambda: into(""))
    """The stream as it enters a block."""
    exit: Tap = field(default_factory=lambda: out_of(""))
    """The stream as it leaves a block."""
    residuals: tuple[str, ...] = ()
    """Modules that add the stream (their second argument) to the increment, one a norm; empty if
    the block's own forward does it."""
    batch_first: str = ""
    """Attribute of the block that says whether fields are [batch, length, dim]; "" if always."""
    layout: FieldLayout = FieldLayout.BLC
    """The axes of the stream, where `batch_first` does not say it."""
    parallel: bool = False
    """Whether attention and feed-forward read one stream: u + Attn(LN u) + FFN(LN u)."""
    traced: bool = False
    """Whether a run has found all this; nothing needs to be tried again."""
    single: bool = False
    """Whether it is one module, named by the caller."""
    lacks: tuple[str, ...] = ()
    """Paths that a block of this family does not have."""
    when: Callable[[nn.Module], bool] | None = None
    """A further condition on a block."""
    find: Callable[[nn.Module], list[BlockParts]] | None = None
    """Finds the blocks where they are no modules of their own."""
    plane: Callable[[nn.Module], Plane] | None = None
    """How the sites of a vision model lie; None along a line."""
    switches: tuple[tuple[str, object], ...] = ()
    """Attributes set, on the modules that have them, while something is inserted."""
    must_be_off: tuple[str, ...] = ()
    """Attributes of the block that must be 0 or False."""
    reasons: Mapping[Position, str] = field(default_factory=dict)
    """Why a position cannot be had."""

    @property
    def reads_model(self) -> bool:
        """Whether mask or cache are arguments of the model's own call."""
        return any(each is not None and each.of_model for each in (self.padding, self.cache))

    def needs(self) -> tuple[str, ...]:
        """List the paths that every block of the family has."""
        taps = (self.attention, self.ffn, self.values, self.heads, self.entry, self.exit)
        paths = [tap.path for tap in taps if tap is not None]
        return tuple(dict.fromkeys((*self.norms, self.width, *self.residuals, *paths)))

    def fits(self, module: nn.Module) -> bool:
        """Return whether a module is a block of this family."""
        if not all(has(module, path) for path in self.needs()):
            return False
        if any(has(module, path) for path in self.lacks):
            return False
        return self.when is None or self.when(module)

    def blocks(self, model: nn.Module) -> list[BlockParts]:
        """Find the blocks of a model, in order."""
        if self.find is not None:
            return self.find(model)
        return [BlockParts(module, module) for module in model.modules() if self.fits(module)]

    def layout_of(self, block: nn.Module) -> FieldLayout:
        """Tell the axes of a block's stream."""
        if self.batch_first and not attribute(block, self.batch_first):
            return FieldLayout.LBC
        return self.layout

    def is_causal(self, block: nn.Module) -> bool | None:
        """Return whether the sites of a block must not see their future; None if not described."""
        if self.causal is None or isinstance(self.causal, bool):
            return self.causal
        return not tells(block, self.causal) or bool(attribute(block, self.causal))


@dataclass(frozen=True, slots=True)
class Stack:
    """Blocks of one family that one module holds, in order."""

    name: str
    """The module that holds them; "" for the whole model."""
    family: Family
    blocks: list[BlockParts]


def tells(module: nn.Module, path: str) -> bool:
    """Return whether a module has an attribute at a dotted path."""
    try:
        attribute(module, path)
    except AttributeError:
        return False
    return True


def has(module: nn.Module, path: str) -> bool:
    """Return whether a module has a submodule at a path."""
    try:
        module.get_submodule(path)
    except AttributeError:
        return False
    return True


def attribute(module: nn.Module, path: str) -> object:
    """Follow attributes along a dotted path."""
    return reduce(getattr, path.split("."), module)

"""The seven positions: where diffusion may act, and where the probe may look.

Pre-norm block:    u ← u + Attn(LN u)        u ← u + FFN(LN u)
"""

from __future__ import annotations

from enum import StrEnum


class Position(StrEnum):
    """A placement in the network.

    >>> config = dp.ModelConfig(positions=(dp.Position.AFTER_EMBEDDING,))   # or its name
    """

    AFTER_EMBEDDING = "after_embedding"
    """The embedded field, once, before the first block."""
    BEFORE_NORM = "before_norm"
    """The input of each normalization."""
    IN_ATTENTION = "in_attention"
    """What attention mixes: the values."""
    IN_HEADS = "in_heads"
    """Each head's output along the sequence, with its own ratio."""
    AFTER_ATTENTION = "after_attention"
    """The attention increment."""
    AFTER_FFN = "after_ffn"
    """The feed-forward increment."""
    BETWEEN_BLOCKS = "between_blocks"
    """The stream between blocks."""


class Route(StrEnum):
    """What a position acts on.

    >>> placed = dp.Placement(position="after_ffn", route=dp.Route.STREAM)   # or route="stream"
    """

    BRANCH = "branch"
    """The increment, before it is added to the residual stream; does not compound with depth."""
    STREAM = "stream"
    """The residual stream itself; compounds with depth."""


ROUTES: dict[Position, tuple[Route, ...]] = {
    Position.AFTER_EMBEDDING: (Route.STREAM,),
    Position.BEFORE_NORM: (Route.BRANCH, Route.STREAM),
    Position.IN_ATTENTION: (Route.BRANCH,),
    Position.IN_HEADS: (Route.BRANCH,),
    Position.AFTER_ATTENTION: (Route.BRANCH, Route.STREAM),
    Position.AFTER_FFN: (Route.BRANCH, Route.STREAM),
    Position.BETWEEN_BLOCKS: (Route.STREAM,),
}
"""The routes of each position, the default first."""


class Option(StrEnum):
    """What else a position may mean, where papers and code differ.

    >>> placed = dp.Placement(position="in_attention", option=dp.Option.QUERIES_KEYS_VALUES)
    """

    AFTER_ENCODING = "after_encoding"
    """After embedding: the field with its site encoding added."""
    BEFORE_ENCODING = "before_encoding"
    """After embedding: the field before its site encoding is added."""
    VALUES = "values"
    """In attention: the values."""
    QUERIES_KEYS_VALUES = "queries_keys_values"
    """In attention: queries, keys and values, each with a layer of its own."""
    QUERIES_KEYS = "queries_keys"
    """In attention: queries and keys, each with a layer of its own; what is mixed stays."""
    WEIGHTS = "weights"
    """In attention: the weights along the key axis, one ratio a head, renormalised."""
    ALONG_SITES = "along_sites"
    """In heads: each head's output along the sequence, one ratio a head."""
    ACROSS_HEADS = "across_heads"
    """In heads: the outputs of a site from head to head; nothing passes between sites."""


OPTIONS: dict[Position, tuple[Option, ...]] = {
    Position.AFTER_EMBEDDING: (Option.AFTER_ENCODING, Option.BEFORE_ENCODING),
    Position.IN_ATTENTION: (
        Option.VALUES,
        Option.QUERIES_KEYS_VALUES,
        Option.WEIGHTS,
        Option.QUERIES_KEYS,
    ),
    Position.IN_HEADS: (Option.ALONG_SITES, Option.ACROSS_HEADS),
}
"""The options of the positions that have any, the default first."""

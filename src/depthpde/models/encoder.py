"""Encoder: from what comes in to the field at the end of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from depthpde.errors import check_mask, check_tensor
from depthpde.layers.decoding import DecodeCache
from depthpde.layers.embedding import (
    Encoding,
    InputKind,
    PatchEmbedding,
    PixelEmbedding,
    SiteEncoding,
)
from depthpde.layers.pooling import Pooling
from depthpde.layers.stabilizer import Dropout, Norm, build_norm
from depthpde.models.block import Block
from depthpde.models.config import ModelConfig
from depthpde.models.placed import Observer, PlacedLayers
from depthpde.models.position import Option, Position
from depthpde.shapes import Field, Mask


class Encoder(nn.Module):
    """Embed what comes in and advance it block by block.

        u(0) = embed(input) + p,     u(t + 1) = block_t(u(t)),     field = S u(blocks)

    The last norm exists in pre-norm models only: in the others the stream is normalised already,
    or not at all. CLS pooling adds one site in front, which no diffusion touches.

    Args:
        config: The model's config, with vocabulary and length known.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        known = ("grid",) if config.input is InputKind.PATCH else ("vocabulary", "length")
        config.check_complete(*known)
        self.embedding = _embedding(config)
        self.encoding: nn.Module | None = None
        if config.encoding in (Encoding.LEARNED, Encoding.SINUSOIDAL):
            sites = (config.length or 0) + config.prefix
            self.encoding = SiteEncoding(Encoding(config.encoding), sites, config.dim)
        self.front = None
        if config.pooling is Pooling.CLS:
            self.front = nn.Parameter(torch.zeros(config.dim))
        self.dropout = Dropout(config.dropout)
        self.placed = PlacedLayers(config, None)
        self._early = any(each.option is Option.BEFORE_ENCODING for each in config.placements)
        self.blocks = nn.ModuleList(Block(config, index) for index in range(config.blocks))
        self.final_norm: nn.Module = nn.Identity()
        if config.stability.norm is Norm.PRE:
            self.final_norm = build_norm(config.stability.kind, config.dim)

    def forward(
        self, inputs: Tensor, valid_mask: Mask | None = None, *, cache: DecodeCache | None = None
    ) -> tuple[Field, Mask | None]:
        """Return the field and the mask of its sites, both with the CLS site in front if any.

        Args:
            inputs: Tokens or pixels [batch, length], real numbers [batch, length, channels], or
                images [batch, channels, height, width].
            valid_mask: True = real token, [batch, length].
            cache: The sites before, in a causal model that decodes site by site.
        """
        if self.config.input is InputKind.TOKEN:
            _check_tokens(inputs)
        u = self._embed(inputs)
        if valid_mask is not None:
            check_mask("valid_mask", valid_mask, u)
        if self.front is not None:
            u = torch.cat((self.front.expand(u.shape[0], 1, -1), u), dim=1)
            if valid_mask is not None:
                valid_mask = nn.functional.pad(valid_mask, (1, 0), value=True)
        u = self._place_sites(u, valid_mask, cache)
        for block in self.blocks:
            u = block(u, valid_mask, cache=cache)
        if cache is not None:
            cache.sites += u.shape[1]
        return self.final_norm(u), valid_mask

    def _embed(self, inputs: Tensor) -> Field:
        try:
            field: Field = self.embedding(inputs)
        except IndexError as error:
            raise ValueError(
                f"`inputs` must be token ids from 0 to {(self.config.vocabulary or 0) - 1}, got "
                f"{int(inputs.min())} to {int(inputs.max())}; build the model with a larger "
                "vocabulary, or map the tokens"
            ) from error
        return field

    def _place_sites(self, u: Field, valid_mask: Mask | None, cache: DecodeCache | None) -> Field:
        """Add the positional embedding, with the layers placed after or before it."""
        stream = partial(self.placed.on_stream, valid_mask=valid_mask, cache=cache)
        if self._early:
            u = stream(Position.AFTER_EMBEDDING, u)
        if self.encoding is not None:
            u = self.encoding(u, start=0 if cache is None else cache.sites)
        u = self.dropout(u)
        return u if self._early else stream(Position.AFTER_EMBEDDING, u)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Tell this one of the field at every position, until the returned function is called."""
        places = [each for each in self.modules() if isinstance(each, PlacedLayers)]
        stops = [each.observe(observer) for each in places]

        def stop() -> None:
            for each in stops:
                each()

        return stop


def _check_tokens(tokens: Tensor) -> None:
    check_tensor("inputs", tokens)
    if tokens.ndim != 2 or tokens.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"`inputs` must be whole token ids [batch, length], got {tokens.dtype} "
            f"{list(tokens.shape)}; use .long(), or input='linear' or 'patch' for pixels"
        )


def _embedding(config: ModelConfig) -> nn.Module:
    if config.input is InputKind.PATCH:
        return PatchEmbedding(config.patch, config.channels, config.dim)
    assert config.vocabulary is not None, "checked by the encoder"
    if config.input is InputKind.LINEAR:
        return PixelEmbedding(config.vocabulary, config.dim, config.channels)
    return nn.Embedding(config.vocabulary, config.dim)

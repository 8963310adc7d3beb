"""One block: one split time step of the equation. It fixes where each position is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from depthpde.layers.convolution import Convolution
from depthpde.layers.decoding import DecodeCache
from depthpde.layers.embedding import Encoding, Rotary
from depthpde.layers.interaction import Attention
from depthpde.layers.reaction import FeedForward
from depthpde.layers.recurrence import Recurrence
from depthpde.layers.stabilizer import Norm, Residual, build_norm
from depthpde.models.config import Interaction, ModelConfig
from depthpde.models.placed import PlacedLayers
from depthpde.models.position import Option, Position
from depthpde.shapes import Field, Mask

Map = Callable[..., Tensor]
"""Takes a field, and gives one of the same shape."""


class Block(nn.Module):
    """Advance the field by one step of time: first the interaction, then the reaction.

        pre-norm     u ← u + A[S u],     u ← u + R(S u)
        post-norm    u ← S(u + A[u]),    u ← S(u + R(u))

    `branch` smooths what is added, `stream` smooths the stream itself. In a post-norm block the
    norm acts on the stream, so both routes before it are the same. A is attention, or what the
    config names in its place.

    Args:
        config: The model's config.
        index: Which block this is, from 0.
    """

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        stabilizer = config.stability
        self.name, self.norm = f"block {index}", stabilizer.norm
        self.placed = PlacedLayers(config, index)
        self.attention = _interaction(config)
        self.reaction = FeedForward(config.dim, config.hidden_dim, activation=config.activation)
        self.attention_norm, self.reaction_norm = (
            nn.Identity() if self.norm is Norm.NONE else build_norm(stabilizer.kind, config.dim)
            for _ in range(2)
        )
        self.add = Residual(
            gain=stabilizer.stream_gain(config.blocks),
            on=stabilizer.residual,
            dropout=config.dropout,
        )

    def forward(
        self, u: Field, valid_mask: Mask | None = None, *, cache: DecodeCache | None = None
    ) -> Field:
        """Return the field one step later.

        Args:
            u: The field, [batch, length, dim].
            valid_mask: True = real token.
            cache: The sites before `u`, in a causal model that decodes site by site.
        """
        branch = partial(self.placed.on_branch, valid_mask=valid_mask, cache=cache)
        stream = partial(self.placed.on_stream, valid_mask=valid_mask, cache=cache)
        attention = partial(self._attend, valid_mask=valid_mask, cache=cache)
        step = self._post_norm if self.norm is Norm.POST else self._pre_norm
        return stream(Position.BETWEEN_BLOCKS, step(u, branch, stream, attention))

    def _attend(
        self, u: Field, branch: Map, *, valid_mask: Mask | None, cache: DecodeCache | None
    ) -> Field:
        """Return the increment of the interaction, open to what is placed inside attention."""
        if not isinstance(self.attention, Attention):
            return self.attention(u, valid_mask=valid_mask)
        return self.attention(
            u,
            branch,
            valid_mask=valid_mask,
            cache=cache,
            name=self.name,
            on_values=self.placed.on_values(valid_mask),
        )

    def _pre_norm(self, u: Field, branch: Map, stream: Map, attention: Map) -> Field:
        u = stream(Position.BEFORE_NORM, u, "attention")
        interaction = attention(
            self.attention_norm(branch(Position.BEFORE_NORM, u, "attention")), branch
        )
        u = self.add(u, branch(Position.AFTER_ATTENTION, interaction))
        u = stream(Position.AFTER_ATTENTION, u)

        u = stream(Position.BEFORE_NORM, u, "reaction")
        reaction = self.reaction(self.reaction_norm(branch(Position.BEFORE_NORM, u, "reaction")))
        u = self.add(u, branch(Position.AFTER_FFN, reaction))
        return stream(Position.AFTER_FFN, u)

    def _post_norm(self, u: Field, branch: Map, stream: Map, attention: Map) -> Field:
        u = self.add(u, branch(Position.AFTER_ATTENTION, attention(u, branch)))
        u = stream(Position.BEFORE_NORM, stream(Position.AFTER_ATTENTION, u), "attention")
        u = self.attention_norm(branch(Position.BEFORE_NORM, u, "attention"))

        u = self.add(u, branch(Position.AFTER_FFN, self.reaction(u)))
        u = stream(Position.BEFORE_NORM, stream(Position.AFTER_FFN, u), "reaction")
        return self.reaction_norm(branch(Position.BEFORE_NORM, u, "reaction"))


def _interaction(config: ModelConfig) -> Attention | Recurrence | Convolution:
    if config.interaction is Interaction.LSTM:
        return Recurrence(config.dim)
    if config.interaction is Interaction.CONVOLUTION:
        assert config.grid is not None, "checked by the encoder"
        return Convolution(config.dim, config.grid)
    return Attention(
        config.dim,
        config.heads,
        causal=config.causal,
        rotation=Rotary(config.head_dim) if config.encoding is Encoding.ROTARY else None,
        dropout=config.attention_dropout,
        explicit=any(each.option is Option.WEIGHTS for each in config.placements),
    )

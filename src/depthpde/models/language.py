"""LanguageModel: the same block, seeing the past only."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from depthpde.errors import check_positive, check_range
from depthpde.layers.decoding import DecodeCache
from depthpde.layers.embedding import InputKind
from depthpde.layers.pooling import Pooling
from depthpde.models.config import ModelConfig, TaskLike, check_config
from depthpde.models.pretrained import Pretrained
from depthpde.operators.linear_map import linear_map
from depthpde.shapes import Mask


class LanguageModel(Pretrained):
    """Tell the next token at every site.

        logits(x) = E field(x),    field(x) depends on tokens 0 … x only

    E is the embedding table itself. Every layer that is placed takes its causal form (upwind); one
    that has none is refused, so the future can never leak.

    >>> model = dp.LanguageModel(dp.ModelConfig(dim=32, vocabulary=257, length=64))
    >>> model.generate(torch.ones(1, 4, dtype=torch.long), 8).shape
    torch.Size([1, 12])

    Args:
        config: The model's config; `causal` is set.
        task: Fills in vocabulary and length; None takes them from the config.
        generator: Source of the first weights; None takes torch's own.
    """

    def __init__(
        self,
        config: ModelConfig,
        task: TaskLike | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        check_config(config)
        if config.input is not InputKind.TOKEN:
            raise ValueError(f"`input` must be 'token' in a language model, got {config.input!s}")
        if config.pooling is Pooling.CLS:
            raise ValueError(
                "`pooling` must not be 'cls' in a language model: a site in front would see "
                "nothing; leave it out"
            )
        config = replace(config, causal=True)
        if task is not None:
            config = config.fit(task)
        super().__init__(config, generator)

    def forward(
        self, tokens: Tensor, valid_mask: Mask | None = None, *, cache: DecodeCache | None = None
    ) -> Tensor:
        """Return the logits of the next token at every site, [batch, length, vocabulary].

        Args:
            tokens: [batch, length].
            valid_mask: True = real token.
            cache: The sites before: an empty `DecodeCache` at first, then the same object with one
                token a call.
        """
        field, _ = self.encoder(tokens, valid_mask, cache=cache)
        return linear_map(field, self.encoder.embedding.get_parameter("weight"))

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        new_tokens: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the tokens with others put after them, [batch, length + new_tokens].

        A new token costs the work of one site: attention keeps keys and values, and every causal
        layer keeps the few sites that it looks back.

        Args:
            tokens: The prompt, [batch, length], without padding.
            new_tokens: How many follow.
            temperature: 0 takes the likeliest; else p ∝ exp(logits / temperature).
            generator: Source of chance.
        """
        check_positive("new_tokens", new_tokens)
        check_range("temperature", temperature, 0.0, 1e6)
        cache, new = DecodeCache(), tokens
        for _ in range(new_tokens):
            logits = self(new, cache=cache)[:, -1]
            if temperature == 0.0:
                new = logits.argmax(dim=-1, keepdim=True)
            else:
                shares = torch.softmax(logits / temperature, dim=-1)
                new = torch.multinomial(shares, 1, generator=generator)
            tokens = torch.cat((tokens, new), dim=1)
        return tokens

"""Classifier: encoder, pooling and a head; for one document or for two."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from depthpde.layers.pooling import pool
from depthpde.models.config import ModelConfig, TaskLike, check_config
from depthpde.models.pretrained import Pretrained
from depthpde.shapes import Mask


class Classifier(Pretrained):
    """Tell the class of a sequence, or how two sequences belong together.

        one document     logits = W pool(field) + b
        two documents    logits = MLP(u, v, u∗v, u − v),    u, v = pool(field) of each

    The two documents share the encoder and are encoded apart.

    >>> model = dp.Classifier(dp.ModelConfig(dim=32), task=dp.tasks["listops-mini"])
    >>> model(torch.ones(2, 50, dtype=torch.long)).shape
    torch.Size([2, 10])

    Args:
        config: The model's config.
        task: Fills in vocabulary, length, classes, grid and the number of documents; None takes
            them from the config.
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
        if task is not None:
            config = config.fit(task)
        config.check_complete("classes")
        super().__init__(config, generator)

    def build(self, config: ModelConfig) -> None:
        """Build the head."""
        assert config.classes is not None, "checked by the constructor"
        self.head: nn.Module = nn.Linear(config.dim, config.classes)
        if config.documents == 2:
            self.head = nn.Sequential(
                nn.Linear(4 * config.dim, config.hidden_dim),
                nn.GELU(),
                nn.Linear(config.hidden_dim, config.classes),
            )

    def forward(
        self,
        inputs: Tensor,
        valid_mask: Mask | None = None,
        second_inputs: Tensor | None = None,
        second_mask: Mask | None = None,
    ) -> Tensor:
        """Return the logits, [batch, classes].

        Args:
            inputs: Tokens or pixels [batch, length], or images [batch, channels, height, width].
            valid_mask: True = real token.
            second_inputs: The other document of each pair.
            second_mask: Its mask.
        """
        if (second_inputs is not None) != (self.config.documents == 2):
            got = "one" if second_inputs is None else "two"
            raise ValueError(
                f"`second_inputs` must be {'given' if got == 'one' else 'left out'}: the model "
                f"was built for {self.config.documents} document(s) an example, got {got}"
            )
        u = self.represent(inputs, valid_mask)
        if second_inputs is None:
            return self.head(u)
        v = self.represent(second_inputs, second_mask)
        return self.head(torch.cat((u, v, u * v, u - v), dim=-1))

    def represent(self, inputs: Tensor, valid_mask: Mask | None = None) -> Tensor:
        """Return one vector for each document, [batch, dim]."""
        field, mask = self.encoder(inputs, valid_mask)
        return pool(field, self.config.pooling, mask)

"""Our models as transformers' own classes, for its Auto classes, Trainer and pipelines.

    config.json   {"model_type": "depthpde", "model": "Classifier", "config": {…}}

A folder that `save_pretrained` of either side wrote is read by both. This file imports
transformers; `register.py` is what the package shows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutput, SequenceClassifierOutput

from depthpde import __version__
from depthpde.models.classifier import Classifier
from depthpde.models.config import ModelConfig
from depthpde.models.language import LanguageModel
from depthpde.models.pretrained import AUTO_PREFIX, MODEL_TYPE

IGNORED = -100
"""The label that transformers leaves out."""


class DepthPDEConfig(PreTrainedConfig):  # type: ignore[misc]
    """The config of one of our models, in transformers' form."""

    model_type = MODEL_TYPE
    model: str = ""
    depthpde: str = __version__
    config: dict[str, Any] | None = None

    @property
    def own(self) -> ModelConfig:
        """The same as our own config."""
        if not self.config:
            raise ValueError(
                "`config` must hold the settings of a depthpde model, got none; make it with "
                "DepthPDEConfig.of(dp.ModelConfig(…))"
            )
        return ModelConfig.from_dict(self.config)

    @property
    def hidden_size(self) -> int:
        """Features of the field, by transformers' name."""
        return self.own.dim

    @property
    def num_hidden_layers(self) -> int:
        """Blocks, by transformers' name."""
        return self.own.blocks

    @property
    def vocab_size(self) -> int | None:
        """Tokens that are known, by transformers' name."""
        return self.own.vocabulary

    @classmethod
    def of(cls, config: ModelConfig, **more: Any) -> DepthPDEConfig:
        """Return the config of a model of ours.

        Args:
            config: Ours.
            more: What transformers knows beside it, such as ``id2label``.
        """
        if config.classes is not None:
            more.setdefault("num_labels", config.classes)
        return cls(config=config.to_dict(), **more)


class DepthPDEModel(PreTrainedModel):  # type: ignore[misc]
    """What both classes share: one of our models under the name ``model``."""

    config_class = DepthPDEConfig
    base_model_prefix = AUTO_PREFIX.rstrip(".")
    kind: type[Classifier] | type[LanguageModel]

    def __init__(self, config: DepthPDEConfig) -> None:
        super().__init__(config)
        if config.model not in ("", self.kind.__name__):
            raise ValueError(
                f"`config.model` must be {self.kind.__name__!r}, got {config.model!r}; load it "
                f"with dp.{config.model}.from_pretrained"
            )
        self.model = self.kind(config.own)
        config.model = self.kind.__name__
        self.post_init()

    @classmethod
    def of(cls, model: Classifier | LanguageModel, **more: Any) -> DepthPDEModel:
        """Return one of our models as one of transformers', with the same weights.

        Args:
            model: Ours.
            more: For the config, such as ``id2label``.
        """
        made = cls(DepthPDEConfig.of(model.config, **more))
        made.model.load_state_dict(model.state_dict())
        return made.to(next(model.parameters()).dtype).train(model.training)

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Leave the weights as our own constructor made them."""

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the embedding."""
        return self.model.encoder.embedding


class DepthPDEForSequenceClassification(DepthPDEModel):
    """Our `Classifier` as transformers expects one."""

    kind = Classifier

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **ignored: Any,
    ) -> SequenceClassifierOutput:
        """Return loss and logits.

        Args:
            input_ids: Tokens, or the values of a series or an image.
            attention_mask: 1 = real token.
            labels: The class of each sequence.
            ignored: What a trainer passes beside these.
        """
        valid = None if attention_mask is None else attention_mask.bool()
        logits = self.model(input_ids, valid)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class DepthPDEForCausalLM(DepthPDEModel, GenerationMixin):  # type: ignore[misc]
    """Our `LanguageModel` as transformers expects one; `generate` works without a cache."""

    kind = LanguageModel

    def __init__(self, config: DepthPDEConfig) -> None:
        super().__init__(config)
        self.generation_config.use_cache = False  # `dp.LanguageModel.generate` has one

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **ignored: Any,
    ) -> CausalLMOutput:
        """Return loss and the logits of the next token at every site.

        Args:
            input_ids: Tokens.
            attention_mask: 1 = real token; padding stands at the end.
            labels: The tokens themselves, as transformers has it: shifted here, −100 left out.
            ignored: What a trainer passes beside these.
        """
        valid = None if attention_mask is None else attention_mask.bool()
        logits = self.model(input_ids, valid)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(
                logits[:, :-1].float().flatten(0, 1),
                labels[:, 1:].flatten(),
                ignore_index=IGNORED,
            )
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **ignored: Any
    ) -> dict[str, Any]:
        """Give the whole sequence at every step."""
        return {"input_ids": input_ids, "attention_mask": attention_mask}

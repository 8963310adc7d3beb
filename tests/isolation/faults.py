"""Seeded faults as data: a healthy model, one part made wrong, and what the audit must say.

Each row: family, question, what is wrong, the module to be named, the wrong part. `build(fault)`
gives the broken model, `healthy(family)` the same without the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from isolation import parts
from isolation.parts import WORDS, Plain

TINY: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
MARKS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": WORDS, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 48}
    return GPT2LMHeadModel(GPT2Config(**sizes, **MARKS))


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"vocab_size": WORDS, "max_position_embeddings": 48}
    return LlamaForCausalLM(LlamaConfig(**TINY, **sizes, **MARKS))


def _bert() -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**TINY, vocab_size=WORDS, max_position_embeddings=48))


def _t5() -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"vocab_size": WORDS, "d_model": 16, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    return T5ForConditionalGeneration(T5Config(**sizes, d_kv=8, decoder_start_token_id=0))


def _bart() -> nn.Module:
    from transformers import BartConfig, BartForConditionalGeneration

    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {"layers": 2, "attention_heads": 2, "ffn_dim": 24}.items()
    }
    marks = {**MARKS, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    return BartForConditionalGeneration(
        BartConfig(vocab_size=WORDS, d_model=16, max_position_embeddings=48, **sizes, **marks)
    )


def _vit() -> nn.Module:
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(**TINY, image_size=16, patch_size=8))


def _ours() -> nn.Module:
    from depthpde.models.config import ModelConfig
    from depthpde.models.language import LanguageModel

    return LanguageModel(ModelConfig(vocabulary=WORDS, dim=16, blocks=2, heads=2, length=48))


def _x(**options: Any) -> nn.Module:
    from x_transformers import Decoder, TransformerWrapper

    sizes = {"dim": 16, "depth": 2, "heads": 2, "attn_dim_head": 8}
    layers = Decoder(**sizes, **options)
    return TransformerWrapper(num_tokens=WORDS, max_seq_len=48, attn_layers=layers)


FAMILIES: dict[str, Callable[[], nn.Module]] = {
    "plain": Plain, "gpt2": _gpt2, "llama": _llama, "bert": _bert, "t5": _t5, "bart": _bart,
    "vit": _vit, "ours": _ours, "x": _x,
}  # fmt: skip
CAUSAL = {"plain": True, "ours": True}
"""What must be said of models that say nothing of themselves."""


@dataclass(frozen=True)
class Fault:
    """One model with one wrong part."""

    family: str
    question: str
    what: str
    where: str
    """The module that the audit must name."""
    part: Callable[[nn.Module], nn.Module] | None = None
    """Builds the wrong part around the right one; None where `make` builds the model."""
    make: Callable[[], nn.Module] | None = None
    at: str = ""
    """Where the part stands, if that is not the module to be named."""
    large: bool = False
    """Whether attention scores are made large, in the healthy model too."""

    def __str__(self) -> str:
        return f"{self.question} {self.family} {self.what}"


def _plain(block: int, fault: str) -> Callable[[], nn.Module]:
    return lambda: Plain(tuple(fault if k == block else "" for k in range(2)))


def _diffusion(inner: nn.Module) -> nn.Module:
    from depthpde.layers.diffusion import Diffusion

    return nn.Sequential(inner, Diffusion(16, initial_ratio=0.2))


_norm = parts.BatchNormOverBatch
F = Fault
FAULTS = (
    F("plain", "future", "mask one site ahead", "h.0.attn", make=_plain(0, "one ahead")),
    F("plain", "future", "mask of −1e4", "h.1.attn", make=_plain(1, "finite mask"), large=True),
    F("plain", "future", "symmetric diffusion", "h.1.mlp.1", _diffusion, at="h.1.mlp"),
    F("gpt2", "future", "looks ahead", "transformer.h.1.mlp", parts.LooksAhead),
    F("llama", "future", "norm over sites", "model.layers.0.post_attention_layernorm",
      parts.NormOverSites),
    F("t5", "future", "looks ahead", "decoder.block.0.layer.2", parts.LooksAhead),
    F("bart", "future", "norm over sites", "model.decoder.layers.1.final_layer_norm",
      parts.NormOverSites),
    F("ours", "future", "looks ahead", "encoder.blocks.1.reaction", parts.LooksAhead),
    F("plain", "padding", "mask of another row", "h.0.attn",
      make=_plain(0, "mask of another row")),
    F("bert", "padding", "mask ignored", "bert.encoder.layer.1.attention.self",
      parts.IgnoresMask),
    F("bert", "padding", "mask of −4", "bert.encoder.layer.0.attention.self", parts.SoftMask),
    F("bert", "padding", "mean over padding", "bert.encoder.layer.0.output", parts.NormOverSites),
    F("gpt2", "padding", "positions count padding", "transformer.wpe", parts.WithoutPositions),
    F("llama", "padding", "mask ignored", "model.layers.1.self_attn", parts.IgnoresMask),
    F("llama", "padding", "rotary by padded length", "model.rotary_emb", parts.RotaryByLength),
    F("t5", "padding", "mean over padding", "encoder.block.1.layer.1", parts.NormOverSites),
    F("bart", "padding", "mask ignored", "model.encoder.layers.0.self_attn", parts.IgnoresMask),
    F("ours", "padding", "smears padding", "encoder.blocks.0.reaction", parts.LooksBack),
    F("plain", "packing", "walls ignored", "h.1.attn", make=_plain(1, "no walls")),
    F("plain", "packing", "smear without walls", "h.0.mlp", parts.LooksBack),
    F("gpt2", "packing", "smear without walls", "transformer.h.0.mlp", parts.LooksBack),
    F("llama", "packing", "walls ignored", "model.layers.1.self_attn", parts.IgnoresMask),
    F("plain", "cache", "off by one", "wpe", make=lambda: Plain(shift=1)),
    F("plain", "cache", "stale", "h.1.attn", make=_plain(1, "stale cache")),
    F("plain", "cache", "too short", "h.0.attn", make=_plain(0, "short cache")),
    F("gpt2", "cache", "off by one", "transformer.h.0.attn", parts.TurnsCache),
    F("llama", "cache", "off by one", "model.layers.1.self_attn", parts.TurnsCache),
    F("llama", "cache", "rotary by length", "model.rotary_emb", parts.RotaryByLength),
    F("bart", "cache", "positions begin anew", "model.decoder.embed_positions",
      parts.ForgetsPast),
    F("x", "cache", "off by one", "attn_layers.layers.2.1.inner.attend",
      parts.TurnsIntermediates, at="attn_layers.layers.2.1"),
    # as the library has it: a shift along the sites does not reach what is cached
    F("x", "cache", "shift without the past", "attn_layers.layers.0.1",
      make=lambda: _x(shift_tokens=1)),
    F("plain", "neighbour", "batch norm over the batch", "h.0.mlp.norm", _norm, at="h.0.mlp"),
    F("gpt2", "neighbour", "expert capacity", "transformer.h.0.mlp", parts.Capacity),
    F("llama", "neighbour", "expert capacity", "model.layers.1.mlp", parts.Capacity),
    F("bert", "neighbour", "mean over rows", "bert.encoder.layer.1.output", parts.MeanOverRows),
    F("t5", "neighbour", "mean over rows", "encoder.block.0.layer.1", parts.MeanOverRows),
    F("vit", "neighbour", "batch norm over the batch", "layers.0.mlp.norm", _norm,
      at="layers.0.mlp"),
    F("plain", "memory", "running mean", "h.0.mlp", parts.RunningMean),
    F("gpt2", "memory", "keeps the last call", "transformer.h.1.mlp", parts.KeepsLast),
    F("llama", "memory", "a list that grows", "model.layers.0.mlp", parts.Diary),
    F("bert", "memory", "dropout in eval", "bert.encoder.layer.0.output", parts.AlwaysDrops),
    F("bart", "memory", "louder in training", "model.encoder.layers.0.fc1",
      parts.LouderInTraining),
    F("vit", "memory", "dropout in eval", "layers.1.mlp", parts.AlwaysDrops),
)  # fmt: skip


def healthy(family: str, *, large: bool = False) -> nn.Module:
    """Build a family's model without a fault."""
    torch.manual_seed(0)
    return _scored(FAMILIES[family](), large).eval()


def build(fault: Fault) -> nn.Module:
    """Build the model with the fault in it."""
    torch.manual_seed(0)
    if fault.make is not None:
        return _scored(fault.make(), fault.large).eval()
    model = FAMILIES[fault.family]()
    where = fault.at or fault.where
    assert fault.part is not None
    model.set_submodule(where, fault.part(model.get_submodule(where)))
    return model.eval()


def batch(family: str) -> Any:
    """Draw what a family is called with; two documents a row where positions are its walls."""
    draw = torch.Generator().manual_seed(1)
    ids = torch.randint(5, WORDS, (3, 10), generator=draw)
    if family == "vit":
        return torch.randn(3, 3, 16, 16, generator=draw)
    if family in ("t5", "bart"):
        return {"input_ids": ids, "decoder_input_ids": ids[:, :7].flip(0)}
    if family in ("gpt2", "llama"):
        return {"input_ids": ids, "position_ids": torch.arange(10).remainder(5).expand(3, -1)}
    return ids


def _scored(model: nn.Module, large: bool) -> nn.Module:
    """Make attention scores exceed 1e4, as a trained model's may."""
    if large:
        with torch.no_grad():
            for block in model.h:
                block.attn.qkv.weight[:32] *= 400
    return model

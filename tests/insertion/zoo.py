"""Small models of every family, each with its own way of being called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

BATCH, LENGTH, DIM, HEADS, BLOCKS, WORDS = 3, 7, 16, 4, 2, 29


@dataclass(frozen=True)
class Animal:
    """A model, and how it is fed: `call(model, feed, valid_mask)` → [batch, length, …]."""

    build: Callable[[], nn.Module]
    feed: Callable[[], Tensor]
    call: Callable[[nn.Module, Tensor, Tensor | None], Tensor]
    causal: bool = False
    pads: bool = True
    without: tuple[str, ...] = ()
    tolerance: float = 0.0
    """How far from the original the model may be at insertion."""


def spread(model: nn.Module) -> nn.Module:
    """Give every matrix a size at which a change is seen, whatever the library starts with."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(generator=generator).div_(weight[0].numel() ** 0.5)
    return model.eval()


def tokens() -> Tensor:
    return torch.randint(1, WORDS, (BATCH, LENGTH), generator=torch.Generator().manual_seed(2))


def embedded() -> Tensor:
    return torch.randn(BATCH, LENGTH, DIM, generator=torch.Generator().manual_seed(2))


def pixels() -> Tensor:
    return torch.randn(BATCH, 3, 8, 12, generator=torch.Generator().manual_seed(2))


def padding(*, left: bool = False) -> Tensor:
    """Two padded sequences: three tokens short, one token short."""
    site, short = torch.arange(LENGTH), torch.tensor([[0], [3], [1]])
    return site >= short if left else site < LENGTH - short


def _ignored(valid: Tensor | None) -> Tensor | None:
    return None if valid is None else ~valid


def _torch_encoder(**options: Any) -> nn.Module:
    options = {"batch_first": True, "dropout": 0.0, **options}
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 2 * DIM, **options)
    nested = options["batch_first"] and not options.get("norm_first", False)
    return spread(nn.TransformerEncoder(layer, BLOCKS, enable_nested_tensor=nested))


def _torch_decoder(**options: Any) -> nn.Module:
    layer = nn.TransformerDecoderLayer(
        DIM, HEADS, 2 * DIM, dropout=0.0, batch_first=True, **options
    )
    return spread(nn.TransformerDecoder(layer, BLOCKS))


def _call_encoder(model: nn.Module, u: Tensor, valid: Tensor | None) -> Tensor:
    return model(u, src_key_padding_mask=_ignored(valid))


def _call_layer(model: nn.Module, u: Tensor, valid: Tensor | None) -> Tensor:
    return model(u, None, _ignored(valid))


def _call_length_first(model: nn.Module, u: Tensor, valid: Tensor | None) -> Tensor:
    return _call_encoder(model, u.transpose(0, 1), valid).transpose(0, 1)


def _call_decoder(model: nn.Module, u: Tensor, valid: Tensor | None) -> Tensor:
    memory = torch.ones(u.shape[0], 2, DIM)
    mask = nn.Transformer.generate_square_subsequent_mask(u.shape[1])
    ignored = None if valid is None else torch.where(valid, 0.0, float("-inf"))
    return model(u, memory, tgt_mask=mask, tgt_is_causal=True, tgt_key_padding_mask=ignored)


def _huggingface(model: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import transformers

        return spread(getattr(transformers, model)(getattr(transformers, config)(**options)))

    return build


def _call_huggingface(model: nn.Module, ids: Tensor, valid: Tensor | None) -> Tensor:
    mask = None if valid is None else valid.long()
    return model(ids, attention_mask=mask, output_hidden_states=False)[0]


def _call_vit(model: nn.Module, image: Tensor, valid: Tensor | None) -> Tensor:
    return model(image).last_hidden_state


def _x_transformers(kind: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import x_transformers

        stack = getattr(x_transformers, kind)(
            dim=DIM, depth=BLOCKS, heads=HEADS, attn_dim_head=4, **options
        )
        return spread(
            x_transformers.TransformerWrapper(num_tokens=WORDS, max_seq_len=32, attn_layers=stack)
        )

    return build


def _call_x(model: nn.Module, ids: Tensor, valid: Tensor | None) -> Tensor:
    return model(ids, mask=valid)


def _call_x_cross(model: nn.Module, ids: Tensor, valid: Tensor | None) -> Tensor:
    return model(ids, mask=valid, context=torch.ones(ids.shape[0], 2, DIM))


BERT = {
    "vocab_size": WORDS,
    "hidden_size": DIM,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": HEADS,
    "intermediate_size": 2 * DIM,
    "max_position_embeddings": 64,
}
LLAMA = BERT | {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": None}
GPT2 = {
    "vocab_size": WORDS,
    "n_embd": DIM,
    "n_layer": BLOCKS,
    "n_head": HEADS,
    "n_positions": 64,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,
}
GEMMA = LLAMA | {
    "head_dim": DIM // HEADS,
    "query_pre_attn_scalar": DIM // HEADS,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
}
OPT = {
    "vocab_size": WORDS,
    "hidden_size": DIM,
    "word_embed_proj_dim": DIM,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": HEADS,
    "ffn_dim": 2 * DIM,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,
}
DISTILBERT = {
    "vocab_size": WORDS,
    "dim": DIM,
    "n_layers": BLOCKS,
    "n_heads": HEADS,
    "hidden_dim": 2 * DIM,
    "max_position_embeddings": 64,
}
VIT = {
    "hidden_size": DIM,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": HEADS,
    "intermediate_size": 2 * DIM,
    "image_size": (8, 12),
    "patch_size": 4,
}

NO_HEADS = {"without": ("in_heads",), "tolerance": 2e-6}

ZOO: dict[str, Animal] = {
    "torch_encoder_post": Animal(_torch_encoder, embedded, _call_encoder, **NO_HEADS),
    "torch_encoder_pre": Animal(
        lambda: _torch_encoder(norm_first=True), embedded, _call_encoder, **NO_HEADS
    ),
    "torch_encoder_length_first": Animal(
        lambda: _torch_encoder(batch_first=False), embedded, _call_length_first, **NO_HEADS
    ),
    "torch_layer": Animal(lambda: _torch_encoder().layers[0], embedded, _call_layer, **NO_HEADS),
    "torch_decoder_post": Animal(_torch_decoder, embedded, _call_decoder, causal=True, **NO_HEADS),
    "torch_decoder_pre": Animal(
        lambda: _torch_decoder(norm_first=True), embedded, _call_decoder, causal=True, **NO_HEADS
    ),
    "bert": Animal(_huggingface("BertModel", "BertConfig", **BERT), tokens, _call_huggingface),
    "roberta": Animal(
        _huggingface("RobertaForMaskedLM", "RobertaConfig", **BERT), tokens, _call_huggingface
    ),
    "distilbert": Animal(
        _huggingface("DistilBertModel", "DistilBertConfig", **DISTILBERT),
        tokens,
        _call_huggingface,
    ),
    "gpt2": Animal(
        _huggingface("GPT2LMHeadModel", "GPT2Config", **GPT2),
        tokens,
        _call_huggingface,
        causal=True,
    ),
    "llama": Animal(
        _huggingface("LlamaForCausalLM", "LlamaConfig", **LLAMA),
        tokens,
        _call_huggingface,
        causal=True,
    ),
    "gemma": Animal(
        _huggingface("Gemma2ForCausalLM", "Gemma2Config", **GEMMA),
        tokens,
        _call_huggingface,
        causal=True,
    ),
    "opt": Animal(
        _huggingface("OPTForCausalLM", "OPTConfig", **OPT), tokens, _call_huggingface, causal=True
    ),
    "vit": Animal(_huggingface("ViTModel", "ViTConfig", **VIT), pixels, _call_vit, pads=False),
    "x_encoder_pre": Animal(_x_transformers("Encoder"), tokens, _call_x),
    "x_encoder_post": Animal(_x_transformers("Encoder", pre_norm=False), tokens, _call_x),
    "x_decoder_pre": Animal(_x_transformers("Decoder"), tokens, _call_x, causal=True),
    "x_decoder_cross": Animal(
        _x_transformers("Decoder", cross_attend=True), tokens, _call_x_cross, causal=True
    ),
}

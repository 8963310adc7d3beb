"""Where each position is in Hugging Face's Transformers.

Blocks are recognised by their parts, so every model built of the same blocks is served: XLM-R and
ELECTRA like BERT, Mistral and Qwen like Llama. The library hands each block its attention mask
(two- or four-dimensional, boolean or additive), which tells the padding even when activation
checkpointing runs the block again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from depthpde.insertion.family import Cache, Family, NormOrder, Padding, Plane, into, out_of


def patch_plane(model: nn.Module) -> Plane:
    """Read the grid of patches of a ViT from its patch embedding, of AST from its spectrogram."""
    tokens = [name.rsplit(".", 1)[-1] for name, _ in model.named_parameters()]
    prefix = sum(name in ("cls_token", "distillation_token") for name in tokens)
    for module in model.modules():
        if hasattr(getattr(module, "config", None), "frequency_stride"):
            shape: Any = getattr(module, "get_shape", None)
            if shape is not None:
                rows, columns = shape(module.config)
                return Plane(prefix=prefix, grid=(int(rows), int(columns)))
        if hasattr(module, "patch_size") and hasattr(module, "image_size"):
            image: Any = module.image_size
            patch: Any = module.patch_size
            image, patch = (v if hasattr(v, "__len__") else (v, v) for v in (image, patch))
            return Plane(prefix=prefix, grid=(image[0] // patch[0], image[1] // patch[1]))
    raise ValueError(
        "`model` must hold the patch embedding of a vision Transformer, got one without "
        "`image_size` and `patch_size`; insert into the whole model"
    )


def has_fused_conv(block: nn.Module) -> bool:
    """Return whether one Conv1D makes queries, keys and values side by side, as GPT-2's does."""
    attention: Any = block.attn
    sizes = [getattr(attention.c_attn, name, 0) for name in ("nx", "nf")]
    return hasattr(attention, "layer_idx") and 0 < 3 * sizes[0] == sizes[1]


BERT = Family(
    name="Hugging Face BERT",
    norm=NormOrder.POST,
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
    attention=out_of("attention.output.dropout"),
    ffn=out_of("output.dropout"),
    width="attention.self.query",
    values=out_of("attention.self.value"),
    heads=into("attention.output.dense"),
    num_heads="attention.self.num_attention_heads",
    causal="is_decoder",
    padding=Padding("attention_mask"),
    cache=Cache("past_key_values", index="attention.self.layer_idx"),
    must_be_off=("chunk_size_feed_forward",),
    lacks=("attention.self.query_global",),  # Longformer has values of two kinds
)
DISTILBERT = Family(
    name="Hugging Face DistilBERT",
    norm=NormOrder.POST,
    norms=("sa_layer_norm", "output_layer_norm"),
    attention=out_of("attention"),
    ffn=out_of("ffn"),
    width="attention.q_lin",
    values=out_of("attention.v_lin"),
    heads=into("attention.out_lin"),
    num_heads="attention.n_heads",
    causal=False,
    padding=Padding("attention_mask"),
)
GPT2 = Family(
    name="Hugging Face GPT-2",
    norm=NormOrder.PRE,
    norms=("ln_1", "ln_2"),
    attention=out_of("attn"),
    ffn=out_of("mlp"),
    width="attn.c_attn",
    values=out_of("attn.c_attn", part=(2, 3)),
    heads=into("attn.c_proj"),
    num_heads="attn.num_heads",
    causal=True,
    padding=Padding("attention_mask"),
    cache=Cache("past_key_values", index="attn.layer_idx"),
    lacks=("ln_cross_attn",),
    when=has_fused_conv,
)
LLAMA = Family(
    name="Hugging Face Llama",
    norm=NormOrder.PRE,
    norms=("input_layernorm", "post_attention_layernorm"),
    attention=out_of("self_attn"),
    ffn=out_of("mlp"),
    width="self_attn.q_proj",
    values=out_of("self_attn.v_proj"),
    heads=into("self_attn.o_proj"),
    num_heads="self_attn.config.num_attention_heads",
    causal="self_attn.is_causal",
    padding=Padding("attention_mask"),
    cache=Cache("past_key_values", index="self_attn.layer_idx"),
    lacks=(
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        "post_self_attn_layernorm",
        "post_mlp_layernorm",
    ),
)
GEMMA = replace(
    LLAMA,
    name="Hugging Face Gemma",
    norms=("input_layernorm", "pre_feedforward_layernorm"),
    attention=out_of("post_attention_layernorm"),
    ffn=out_of("post_feedforward_layernorm"),
    lacks=(),
)
"""A norm on both sides of each term: what is added is what leaves the second."""
OPT = replace(
    LLAMA,
    name="Hugging Face OPT",
    norms=("self_attn_layer_norm", "final_layer_norm"),
    ffn=out_of("fc2"),
    heads=into("self_attn.out_proj"),
    num_heads="self_attn.num_heads",
    causal=True,
    lacks=("encoder_attn",),
    when=lambda block: bool(getattr(block, "do_layer_norm_before", False)),
)
VIT = replace(
    LLAMA,
    name="Hugging Face ViT",
    norms=("layernorm_before", "layernorm_after"),
    attention=out_of("attention"),
    width="attention.q_proj",
    values=out_of("attention.v_proj"),
    heads=into("attention.o_proj"),
    num_heads="attention.num_attention_heads",
    causal=False,
    cache=None,
    lacks=(),
    plane=patch_plane,
)

HUGGINGFACE = (BERT, DISTILBERT, GPT2, LLAMA, GEMMA, OPT, VIT)

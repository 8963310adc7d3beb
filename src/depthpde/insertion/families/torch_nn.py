"""Where each position is in ``torch.nn``'s Transformer layers.

Both orders of normalization, batch first or length first, alone or inside a TransformerEncoder or
TransformerDecoder. `nn.MultiheadAttention` projects inside one function call: the values are
reached before their projection (which commutes with a ratio that all features share), the heads'
outputs are not reached at all. Whether an encoder is causal depends on the masks that the model
around it makes, so it is not stated here: it is found out.

In eval mode `nn.TransformerEncoder` would turn a padded batch into nested tensors, which have no
sites; `use_nested_tensor` is off while something is inserted.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from depthpde.insertion.family import Family, NormOrder, Padding, into, out_of
from depthpde.models.position import Position


def _norm_first(block: nn.Module) -> bool:
    return bool(getattr(block, "norm_first", False))


def _norm_last(block: nn.Module) -> bool:
    return not _norm_first(block)


ENCODER_PRE = Family(
    name="torch.nn.TransformerEncoderLayer",
    norm=NormOrder.PRE,
    norms=("norm1", "norm2"),
    attention=out_of("dropout1"),
    ffn=out_of("dropout2"),
    width="linear1",
    values=into("self_attn", argument=2),
    num_heads="self_attn.num_heads",
    padding=Padding("src_key_padding_mask", keep=False),
    causal_arguments=("is_causal",),
    batch_first="self_attn.batch_first",
    lacks=("multihead_attn",),
    when=_norm_first,
    switches=(("use_nested_tensor", False),),
    reasons={
        Position.IN_HEADS: "nn.MultiheadAttention mixes the heads and projects them inside one "
        "function call, where no hook can reach"
    },
)
ENCODER_POST = replace(ENCODER_PRE, norm=NormOrder.POST, when=_norm_last)
DECODER_PRE = replace(
    ENCODER_PRE,
    name="torch.nn.TransformerDecoderLayer",
    norms=("norm1", "norm2", "norm3"),
    ffn=out_of("dropout3"),
    causal=True,
    padding=Padding("tgt_key_padding_mask", keep=False),
    causal_arguments=("tgt_is_causal",),
    lacks=(),
)
DECODER_POST = replace(DECODER_PRE, norm=NormOrder.POST, when=_norm_last)

TORCH_NN = (ENCODER_PRE, ENCODER_POST, DECODER_PRE, DECODER_POST)

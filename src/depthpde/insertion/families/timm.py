"""Where each position is in timm's vision Transformer.

The increments are taken after layer scale and stochastic depth, as they are added. Diffusion runs
over the grid of patches; class token and registers are left alone.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from depthpde.insertion.family import Family, NormOrder, Plane, into, out_of


def patch_plane(model: nn.Module) -> Plane:
    """Read the grid of patches from the model's patch embedding."""
    for module in model.modules():
        embedding: Any = getattr(module, "patch_embed", None)
        if hasattr(embedding, "grid_size") and hasattr(module, "num_prefix_tokens"):
            height, width = embedding.grid_size
            prefix: Any = module.num_prefix_tokens
            return Plane(prefix=int(prefix), grid=(int(height), int(width)))
    raise ValueError(
        "`model` must hold timm's `patch_embed` with a `grid_size`, got one without; "
        "insert into the whole VisionTransformer"
    )


TIMM_VIT = Family(
    name="timm VisionTransformer",
    norm=NormOrder.PRE,
    norms=("norm1", "norm2"),
    attention=out_of("drop_path1"),
    ffn=out_of("drop_path2"),
    width="attn.qkv",
    values=out_of("attn.qkv", part=(2, 3)),
    heads=into("attn.proj"),
    num_heads="attn.num_heads",
    causal=False,
    causal_arguments=("is_causal",),
    plane=patch_plane,
)

TIMM = (TIMM_VIT,)

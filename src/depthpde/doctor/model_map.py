"""ModelMap: where the blocks of a model are, and where each of their parts can be seen.

Our own models and every family that `insertion` knows, described in the same terms. Where
the queries and keys of a family are is defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from depthpde.insertion.families.huggingface import BERT, DISTILBERT, GEMMA, GPT2, LLAMA, OPT, VIT
from depthpde.insertion.families.recognition import find_stacks
from depthpde.insertion.families.timm import TIMM_VIT
from depthpde.insertion.families.torch_nn import DECODER_PRE, ENCODER_PRE
from depthpde.insertion.families.x_transformers import PRE as X_TRANSFORMERS
from depthpde.insertion.family import (
    BlockParts,
    Family,
    NormOrder,
    Padding,
    Tap,
    attribute,
    has,
    into,
    out_of,
    tells,
)
from depthpde.insertion.hooks.container import PREFIX
from depthpde.insertion.layout import FieldLayout
from depthpde.models.block import Block as OwnBlock
from depthpde.models.encoder import Encoder


@dataclass(frozen=True, slots=True)
class QueryKeyTaps:
    """Where queries and keys of a family's attention can be seen."""

    query: Tap
    key: Tap
    rotary: str = ""
    """Argument of the block's forward that brings cosines and sines."""
    fused: str = ""
    """Path of an `nn.MultiheadAttention`, which projects by itself."""


TORCH = QueryKeyTaps(into("self_attn", 0), into("self_attn", 1), fused="self_attn")
QUERY_KEY_TAPS: dict[str, QueryKeyTaps] = {
    BERT.name: QueryKeyTaps(out_of("attention.self.query"), out_of("attention.self.key")),
    DISTILBERT.name: QueryKeyTaps(out_of("attention.q_lin"), out_of("attention.k_lin")),
    GPT2.name: QueryKeyTaps(out_of("attn.c_attn", (0, 3)), out_of("attn.c_attn", (1, 3))),
    LLAMA.name: QueryKeyTaps(
        out_of("self_attn.q_proj"), out_of("self_attn.k_proj"), rotary="position_embeddings"
    ),
    GEMMA.name: QueryKeyTaps(
        out_of("self_attn.q_proj"), out_of("self_attn.k_proj"), rotary="position_embeddings"
    ),
    OPT.name: QueryKeyTaps(out_of("self_attn.q_proj"), out_of("self_attn.k_proj")),
    VIT.name: QueryKeyTaps(out_of("attention.q_proj"), out_of("attention.k_proj")),
    TIMM_VIT.name: QueryKeyTaps(out_of("attn.qkv", (0, 3)), out_of("attn.qkv", (1, 3))),
    X_TRANSFORMERS.name: QueryKeyTaps(out_of("attention.to_q"), out_of("attention.to_k")),
    ENCODER_PRE.name: TORCH,
    DECODER_PRE.name: TORCH,
}
"""By the family's name."""
TRACED = QueryKeyTaps(out_of("query"), out_of("key"), rotary="position_embeddings")
"""Of a family that a run has found; weights that do not follow from them are refused."""

OWN = Family(
    name="depthpde",
    norm=NormOrder.PRE,
    norms=("attention_norm", "reaction_norm"),
    attention=out_of("attention"),
    ffn=out_of("reaction"),
    width="attention.query",
    values=out_of("attention.value"),
    heads=into("attention.out"),
    num_heads="attention.heads",
    causal="attention.causal",
    padding=Padding("valid_mask"),
    when=lambda block: isinstance(block, OwnBlock),
)
OWN_UNATTENDED = replace(
    OWN, width="attention.out", values=None, heads=None, num_heads="", causal=False
)
"""Our blocks whose sites are mixed by something else than attention."""
OWN_QUERY_KEY_TAPS = QueryKeyTaps(out_of("attention.query"), out_of("attention.key"))


@dataclass(frozen=True, slots=True)
class ModelMap:
    """A model, its blocks, and where their parts are."""

    model: nn.Module
    family: Family
    blocks: Sequence[BlockParts]
    query_key: QueryKeyTaps | None
    """None where no queries and keys can be seen."""
    encoder: Encoder | None
    """Of our own models."""
    stack: str = ""
    """The module that holds the blocks, where a run has found them."""
    others: tuple[str, ...] = ()
    """Further stacks of the model, which are not looked at."""

    @property
    def causal(self) -> bool | None:
        """Whether a site must not see its future; None where it is not known."""
        parts = self.blocks[0].parts
        # insertion takes a block that does not say so for causal, to be safe; here that would
        # claim a leak of an encoder
        silent = isinstance(self.family.causal, str) and not tells(parts, self.family.causal)
        own = None if silent else self.family.is_causal(parts)
        inserted = getattr(self.model, PREFIX, None)
        return own if inserted is None or own is not None else bool(inserted.causal)

    def heads(self, block: int) -> int:
        """Give the number of heads of a block, 0 where it is not known."""
        try:
            value = attribute(self.blocks[block].parts, self.family.num_heads)
        except AttributeError:
            return 0
        return value if isinstance(value, int) else 0

    def layout(self, block: int = 0) -> FieldLayout:
        """Tell the axes of a block's fields."""
        return self.family.layout_of(self.blocks[block].parts)

    def turn(self, block: int) -> int | None:
        """Tell at which of its calls a block that runs many times is this one; None if once."""
        own = [k for k, each in enumerate(self.blocks) if each.parts is self.blocks[block].parts]
        return own.index(block) if len(own) > 1 else None

    def projection(self, block: int, part: str) -> Tensor | None:
        """Give the matrix [out, in] of attention's query, key, value or out; None if not seen."""
        parts, query_key, family = self.blocks[block].parts, self.query_key, self.family
        if query_key is None:
            return None
        if query_key.fused:
            return _fused(parts.get_submodule(query_key.fused), part)
        taps = {
            "query": query_key.query,
            "key": query_key.key,
            "value": family.values,
            "out": family.heads,
        }
        tap = taps[part]
        weight = None if tap is None else linear_weight(parts.get_submodule(tap.path))
        if tap is None or weight is None:
            return None
        k, count = tap.part
        return weight.chunk(count, dim=0)[k]

    def reaction_weights(self, block: int) -> list[Tensor]:
        """List the matrices of a block's feed-forward: those that are not attention's."""
        query_key, parts = self.query_key, self.blocks[block].parts
        if self.family.traced:
            parts = parts.get_submodule(self.family.ffn.path) if self.family.ffn else nn.Module()
        path = self.family.width if query_key is None else query_key.query.path
        inside = f"{path.split('.')[0]}."
        found = [
            linear_weight(module)
            for name, module in parts.named_modules()
            if not name.startswith((inside, "placed", "cross", "multihead"))
        ]
        return [weight for weight in found if weight is not None]


def model_map(
    model: nn.Module,
    family: Family | None = None,
    *,
    stack: str | None = None,
    batch: Mapping[str, Any] | None = None,
) -> ModelMap:
    """Find the blocks of a model; an error explains how to describe them.

    Args:
        model: One of our models, one of a family that `insertion` knows, or any residual stack.
        family: The description of a family that is not known.
        stack: The module that holds the blocks, where there are several; by default the longest,
            and of equals the last (a decoder).
        batch: Named arguments of the model, to find the blocks by running it.
    """
    if family is None:
        encoders = [each for each in model.modules() if isinstance(each, Encoder)]
        if len(encoders) == 1:
            blocks = [BlockParts(each, each) for each in encoders[0].blocks]
            if encoders[0].config.interaction is not None:
                return ModelMap(model, OWN_UNATTENDED, blocks, None, encoders[0])
            return ModelMap(model, OWN, blocks, OWN_QUERY_KEY_TAPS, encoders[0])
    found = find_stacks(model, family, stack=stack, batch=batch)
    held = max(reversed(found), key=lambda each: len(each.blocks))
    known, blocks = held.family, held.blocks
    if known.traced:
        turns = sorted((turn, k) for k, block in enumerate(blocks) for turn in block.turns)
        blocks = [blocks[k] for _, k in turns]
        query_key: QueryKeyTaps | None = TRACED
    else:
        query_key = QUERY_KEY_TAPS.get(known.name) if family is None else None
    if query_key is not None:
        paths = query_key.query.path, query_key.key.path
        query_key = query_key if all(has(blocks[0].parts, path) for path in paths) else None
    others = tuple(each.name for each in found if each is not held)
    return ModelMap(model, known, blocks, query_key, None, held.name, others)


def block_of(body: ModelMap) -> Callable[[str], str]:
    """Give the function that names the block of a weight, or the part it belongs to."""
    owners: dict[int, str] = {}
    for k, block in enumerate(body.blocks, start=1):
        owners |= {id(weight): f"block {k}" for weight in block.parts.parameters()}
    names = {name: owners.get(id(weight)) for name, weight in body.model.named_parameters()}
    return lambda name: names.get(name) or name.split(".")[0]


def linear_weight(module: Any) -> Tensor | None:
    """Give the matrix [out, in] of a linear map, whatever the library calls it."""
    weight = getattr(module, "weight", None)
    if isinstance(module, nn.Sequential) and len(module):
        return linear_weight(module[0])
    if not isinstance(weight, Tensor) or weight.ndim != 2 or isinstance(module, nn.Embedding):
        return None
    if not weight.is_floating_point():  # the codes of a quantized matrix are not the matrix
        return None
    return weight.detach().mT if hasattr(module, "nx") else weight.detach()


def _fused(attention: Any, part: str) -> Tensor | None:
    if part == "out":
        return linear_weight(attention.out_proj)
    if attention.in_proj_weight is None:
        return None
    index = ("query", "key", "value").index(part)
    return attention.in_proj_weight.detach().chunk(3, dim=0)[index]

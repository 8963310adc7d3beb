"""Components: which part of a Transformer a module is, by the family's description and its name.

embedding · positions · q, k, v · score · feed-forward · norm · residual · output
"""

from __future__ import annotations

from torch import Tensor, nn

from depthpde.doctor.model_map import ModelMap

POSITION_NAMES = ("pos", "wpe", "rotary", "sites")
HEAD_NAMES = ("head", "classifier", "lm_head", "score", "pooler", "decoder", "cls", "fc")


def component_of(body: ModelMap, path: str) -> str:
    """Name the component of a module.

    Args:
        body: The model.
        path: The module's name in it; "" is the model itself.
    """
    module = body.model.get_submodule(path)
    if "norm" in type(module).__name__.lower():
        return "norm"
    for block in body.blocks:
        for name, each in block.parts.named_modules():
            if each is module:
                return _inside(body, block.parts, name)
    return _outside(body, module, path)


def component_of_weight(body: ModelMap, name: str) -> str:
    """Name the component of a weight: what attention holds itself is q, k, v.

    Args:
        body: The model.
        name: The weight's name in it.
    """
    path, _, own = name.rpartition(".")
    found = component_of(body, path)
    if found in ("output", "embedding") and any(each in own for each in POSITION_NAMES):
        return "positions"  # a table that a model holds itself
    return "q, k, v" if found == "score" else found


def _inside(body: ModelMap, block: nn.Module, path: str) -> str:
    if not path:
        return "residual"
    if path.endswith(("drop", "dropout", "dropout1", "dropout2", "drop_path1", "drop_path2")):
        return "residual"
    root = attention_root(body)
    if path == root or path.startswith(f"{root}."):
        module = block.get_submodule(path)
        linear = isinstance(getattr(module, "weight", None), Tensor)
        return "q, k, v" if linear and not list(module.children()) else "score"
    return "feed-forward"


def attention_root(body: ModelMap) -> str:
    """Give the path of attention in a block, by where its queries are."""
    tap = body.family.values if body.query_key is None else body.query_key.query
    return (body.family.width if tap is None else tap.path).split(".")[0]


def _outside(body: ModelMap, module: nn.Module, path: str) -> str:
    if any(block.parts in module.modules() for block in body.blocks):
        return "residual" if path else "output"
    name = path.lower()
    if any(each in name for each in POSITION_NAMES):
        return "positions"
    if isinstance(module, nn.Embedding) or "embed" in name or "patch" in name:
        return "embedding"
    last = name.rpartition(".")[2]
    if any(each in name for each in HEAD_NAMES) or last == "out":
        return "output"
    return "embedding" if _before_blocks(body, path) else "output"


def _before_blocks(body: ModelMap, path: str) -> bool:
    """Tell whether a module is defined before the blocks are."""
    names = [name for name, _ in body.model.named_modules()]
    blocks = [name for name, each in body.model.named_modules() if each is body.blocks[0].parts]
    return bool(blocks) and names.index(path) < names.index(blocks[0])

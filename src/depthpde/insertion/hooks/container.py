"""The one submodule that holds every inserted layer, and the hooks that call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn

from depthpde.insertion.family import BlockParts, Family
from depthpde.insertion.hooks.block_hooks import BlockHooks

PREFIX = "depthpde_insertion"
"""The submodule's name on the model."""


class InsertedLayers(nn.ModuleDict):
    """Every layer inserted into a model, by name."""

    def __init__(self, family: Family, blocks: Sequence[BlockParts]) -> None:
        super().__init__()
        self.family = family
        self.block_hooks = [BlockHooks(family, block) for block in blocks]
        self.switched: list[tuple[nn.Module, str, object]] = []
        self.causal = False
        """Whether the model was found, or said, to show no site its future."""

    def attach(self, model: nn.Module) -> None:
        """Become the model's submodule, and set what must be set while something is inserted."""
        if hasattr(model, PREFIX):
            return
        for module in model.modules():
            for name, value in self.family.switches:
                if hasattr(module, name):
                    self.switched.append((module, name, getattr(module, name)))
                    setattr(module, name, value)
        model.add_module(PREFIX, self)

    def discard(self, model: nn.Module, names: Iterable[str]) -> None:
        """Take layers out; with the last one, leave the model as it was."""
        for name in names:
            for wiring in self.block_hooks:
                wiring.discard(name)
            del self[name]
        if len(self) == 0:
            for module, name, value in self.switched:
                setattr(module, name, value)
            delattr(model, PREFIX)


def container(model: nn.Module, family: Family, blocks: Sequence[BlockParts]) -> InsertedLayers:
    """Return the container of a model, or one that is not attached yet."""
    own = getattr(model, PREFIX, None)
    for block in blocks:
        for hook in block.scope._forward_pre_hooks.values():
            wiring = getattr(hook, "__self__", None)
            if isinstance(wiring, BlockHooks) and (own is None or wiring not in own.block_hooks):
                raise ValueError(
                    "`model` must be the module that earlier insertions were made into, got "
                    f"{type(model).__name__}, a part or an owner of it; pass that same module"
                )
    return InsertedLayers(family, blocks) if own is None else own

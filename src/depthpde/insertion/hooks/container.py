"""The one submodule that holds every inserted layer, and the hooks that call them."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from depthpde.insertion.family import Stack
from depthpde.insertion.hooks.block_hooks import BlockHooks
from depthpde.insertion.hooks.hooked_forward import HookedForward
from depthpde.insertion.hooks.model_hooks import ModelHooks

PREFIX = "depthpde_insertion"
"""The submodule's name on the model."""


class InsertedLayers(nn.ModuleDict):
    """Every layer inserted into a model, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: dict[str, Stack] = {}
        self.hooks: dict[str, list[BlockHooks]] = {}
        self.model_hooks: ModelHooks | None = None
        """Reads the model's own call, where a stack needs it."""
        self.switched: list[tuple[nn.Module, str, object]] = []
        self.causal = False
        """Whether the model was found, or said, to show no site its future."""

    @property
    def block_hooks(self) -> list[BlockHooks]:
        """The hooks of every block."""
        return [each for hooks in self.hooks.values() for each in hooks]

    def attach(self, model: nn.Module, stack: Stack) -> None:
        """Become the model's submodule, and set what must be set while something is inserted."""
        if not hasattr(model, PREFIX):
            model.add_module(PREFIX, self)
        if stack.name in self.stacks:
            return
        self.stacks[stack.name] = stack
        if stack.family.reads_model and self.model_hooks is None:
            self.model_hooks = ModelHooks(model)
        self.hooks[stack.name] = [
            BlockHooks(stack.family, block, self.model_hooks) for block in stack.blocks
        ]
        for module in model.modules():
            for name, value in stack.family.switches:
                if hasattr(module, name):
                    self.switched.append((module, name, getattr(module, name)))
                    setattr(module, name, value)

    def discard(self, model: nn.Module, names: Iterable[str]) -> None:
        """Take layers out; with the last one, leave the model as it was."""
        for name in names:
            for hooks in self.block_hooks:
                hooks.discard(name)
            del self[name]
        if len(self) == 0:
            for module, name, value in self.switched:
                setattr(module, name, value)
            if self.model_hooks is not None:
                self.model_hooks.remove()
            delattr(model, PREFIX)


def container(model: nn.Module, stack: Stack) -> InsertedLayers:
    """Return the container of a model, or one that is not attached yet."""
    own = getattr(model, PREFIX, None)
    for block in stack.blocks:
        for hooks in _at_call(block.scope):
            if isinstance(hooks, BlockHooks) and (own is None or hooks not in own.block_hooks):
                raise ValueError(
                    "`model` must be the module that earlier insertions were made into, got "
                    f"{type(model).__name__}, a part or an owner of it; pass that same module"
                )
    return InsertedLayers() if own is None else own


def _at_call(scope: nn.Module) -> Iterable[object]:
    """Give everything that is hooked to the call of a block."""
    forward = scope.__dict__.get("forward")
    yield from forward.around if isinstance(forward, HookedForward) else ()
    yield from (getattr(each, "__self__", None) for each in scope._forward_pre_hooks.values())


def held_stacks(model: nn.Module, name: str | None) -> list[Stack]:
    """List the stacks that earlier insertions found by a run: layers in them would blur another.

    Args:
        model: The model.
        name: The one that is meant; None for every.
    """
    own = getattr(model, PREFIX, None)
    stacks = own.stacks.values() if isinstance(own, InsertedLayers) else ()
    return [
        each
        for each in stacks
        if each.family.traced and not each.family.single and name in (None, each.name)
    ]

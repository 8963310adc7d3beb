"""Has this model been compiled? Compiled code does not see hooks that come or go afterwards."""

from __future__ import annotations

import gc
import sys

from torch import nn


def check_not_compiled(model: nn.Module, doing: str) -> None:
    """Refuse to change the hooks of a model of which a compiled form exists.

    Args:
        model: The model.
        doing: What was asked for.
    """
    if _has_compiled_form(model):
        raise ValueError(
            f"`model` must not be compiled when {doing}, got one that torch.compile has wrapped: "
            "its code would not see the hooks; do this first and compile afterwards, or call "
            "torch.compiler.reset() and compile again"
        )


def _has_compiled_form(model: nn.Module) -> bool:
    """Return whether a living wrapper of `torch.compile` holds, or is, a part of the model."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None:  # nothing was compiled in this process
        return False
    backends = getattr(dynamo, "cached_backends", {"unknown": True})  # emptied by reset()
    if not any(backend is not None for backend in backends.values()):
        return False
    modules = list(model.modules())
    if any(getattr(module, "_compiled_call_impl", None) is not None for module in modules):
        return True
    mine = {id(module) for module in modules}
    if not _is_held(mine, dynamo.OptimizedModule):
        return False
    gc.collect()  # slow, so only now: the wrapper may be one that nobody holds any more
    return _is_held(mine, dynamo.OptimizedModule)


def _is_held(modules: set[int], wrapper: type[nn.Module]) -> bool:
    """Return whether some object of a type of wrapper has one of the modules, by id, as a part."""
    held = [each for each in gc.get_objects() if type(each) is wrapper]
    return any(id(part) in modules for each in held for part in each.modules())

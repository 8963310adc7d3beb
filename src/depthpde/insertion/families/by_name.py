"""One module of any model, named by its owner: a layer acts on what leaves it.

A run tells how wide the tensor is, whether it is an image (of any size later), and whether the
module shows a site its future. Works on convolutional and recurrent networks, state-space models,
and what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from depthpde.errors import check_one_of
from depthpde.insertion.calling import call_model, quiet
from depthpde.insertion.example import examples
from depthpde.insertion.families.arguments import argument_roles
from depthpde.insertion.families.traced import view_of
from depthpde.insertion.family import BlockParts, Family, NormOrder, Plane, Stack, has, into, out_of
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given, Recorder
from depthpde.insertion.residual import BlockCall, block_causality


def stack_at(
    model: nn.Module, at: str, layout: FieldLayout | str, batch: Mapping[str, Any] | None
) -> Stack:
    """Describe one module as a stack of one block.

    Args:
        model: The model; it is left as it was.
        at: The module, as `get_submodule` takes it.
        layout: The axes of what leaves it.
        batch: Named arguments to run the model with; by default a tiny input is made.
    """
    axes = check_one_of("layout", layout, FieldLayout)
    names = [name for name, _ in model.named_modules() if name]
    if not at or not has(model, at):
        near = ", ".join(get_close_matches(at, names, n=3, cutoff=0.4)) or ", ".join(names[:3])
        raise ValueError(
            f"`at` must name a module of the model, got {at!r}; the nearest are {near}"
        )
    module = model.get_submodule(at)
    given, (call, out) = _run(model, module, batch)
    if out.ndim != len(axes.value):
        raise ValueError(
            f"`layout` must have the {out.ndim} axes of what leaves {at!r}, {list(out.shape)}, got "
            f"{axes.value!r}; the layouts are {', '.join(FieldLayout)}"
        )
    grid = axes.grid(out)
    block = _call(module, call, out, axes)
    causal = False if grid else (None if block is None else block_causality(block))
    view = view_of(module)
    whole = BlockCall(module, call, 0, out, out, axes)
    padding, cache = argument_roles(model, given, [whole], [view], causal=causal)
    family = Family(
        name=f"behind {at}",
        norm=NormOrder.PRE,
        norms=(),
        attention=None,
        ffn=None,
        entry=into("block"),
        exit=out_of("block"),
        causal=causal,
        padding=padding,
        cache=cache,
        layout=axes,
        plane=(lambda model: Plane(prefix=0, grid=grid)) if grid else None,
        traced=True,
        single=True,
    )
    return Stack(at, family, [BlockParts(view, module, axes.features(out))])


def _run(
    model: nn.Module, module: nn.Module, batch: Mapping[str, Any] | None
) -> tuple[dict[str, Any], tuple[Given, Tensor]]:
    """Run the model until the module gives a tensor; say what to do where that cannot be had."""
    reason = ""
    for given in examples(model) if batch is None else (dict(batch),):
        seen: list[tuple[Given, Tensor]] = []

        def see(call: Given, output: Any, seen: list[tuple[Given, Tensor]] = seen) -> None:
            if isinstance(output, tuple) and not isinstance(output, PackedSequence):
                output = output[0]
            if isinstance(output, PackedSequence):
                output = pad_packed_sequence(output, batch_first=True)[0]
            if isinstance(output, Tensor):
                seen.append((call, output.detach()))

        try:
            with quiet(model), Recorder() as recorder:
                recorder.on_return(module, see)
                call_model(model, (), dict(given))
        except Exception as error:  # anything may go wrong in somebody's forward
            reason = reason or str(error)
            continue
        if seen:
            return dict(given), seen[0]
        reason = "the module did not run, or gave no tensor"
        break
    reason = reason or "no tiny input could be made for it"
    raise ValueError(
        f"`at` needs a run of the model to know its tensor, got none: {reason}; pass batch= with "
        "named arguments that the model can be called with"
    )


def _call(module: nn.Module, given: Given, out: Tensor, axes: FieldLayout) -> BlockCall | None:
    """Give the module's call as one that can be repeated; None where it reads no field."""
    values: list[tuple[int | str, Any]] = [*enumerate(given.args), *given.named.items()]
    for key, u in values:
        if isinstance(u, Tensor) and u.is_floating_point() and u.shape[:2] == out.shape[:2]:
            return BlockCall(module, given, key, u.detach(), out, axes)
    return None

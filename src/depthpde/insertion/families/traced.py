"""A family for any residual stack, made from one run: the fallback where no description fits.

Stacks are containers whose members keep the shape of the stream; `residual` tells what each member
adds to it. Every block is shown through a view with the same names, so members of several kinds
(a hybrid's attention and state-space blocks) are one family. A position exists where every block
of the stack has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from depthpde.insertion.calling import CallError, call_model, quiet
from depthpde.insertion.example import examples
from depthpde.insertion.families.arguments import argument_roles
from depthpde.insertion.family import (
    BlockParts,
    Family,
    Plane,
    Stack,
    into,
    out_of,
)
from depthpde.insertion.hooks.container import InsertedLayers
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import Given, Recorder, argument_names
from depthpde.insertion.residual import BlockCall, BlockComposition, decompose, is_linear

CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)
HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads")
PROJECTIONS = {
    "query": ("q_proj", "query", "q_lin", "q", "to_q", "wq", "query_proj"),
    "key": ("k_proj", "key", "k_lin", "k", "to_k", "wk", "key_proj"),
    "value": ("v_proj", "value", "v_lin", "v", "to_v", "wv", "value_proj"),
}
"""How libraries call the three maps; a wrong guess is found by whoever computes with them."""


@dataclass(slots=True)
class _Run:
    """What one run showed of every container's members."""

    calls: dict[str, list[BlockCall]] = field(default_factory=dict)
    order: dict[str, list[int]] = field(default_factory=dict)
    grids: dict[str, tuple[int, int]] = field(default_factory=dict)


def trace(model: nn.Module, batch: Mapping[str, Any] | None = None) -> tuple[list[Stack], str]:
    """Find the residual stacks of a model by running it; and why there are none.

    Raise where the caller's own batch cannot be run: nothing else is wrong then.

    Args:
        model: The model; it is left as it was.
        batch: Named arguments to run it with; by default a tiny input is made.
    """
    reason = ""
    for given in examples(model) if batch is None else (batch,):
        try:
            with quiet(model):
                stacks = list(_stacks(model, dict(given)))
        except Exception as error:  # anything may go wrong in somebody's forward
            if batch is not None and isinstance(error, CallError):
                raise
            reason = reason or str(error)
            continue
        if stacks:
            return stacks, ""
        reason = reason or "no container of modules keeps the shape of one stream"
    return [], reason or "no tiny input could be made for it"


def _stacks(model: nn.Module, given: dict[str, Any]) -> Iterator[Stack]:
    """Give the outermost containers of blocks: they add terms, else mix sites, else are alike.

    An untrained network whose branches start at zero neither adds nor mixes.
    """
    run = _watch(model, given)
    known = {name: _anatomies(_once(calls)) for name, calls in run.calls.items()}
    alike = {name for name, calls in run.calls.items() if _of_one_class(calls)}
    for enough in (_adds, _mixes, lambda name, each: name in alike):
        taken: list[str] = []
        for name, calls in run.calls.items():
            inner = any(name.startswith(f"{each}.") for each in taken)
            fits = 2 * sum(enough(name, each) for each in known[name]) >= len(known[name])
            if not inner and fits and len({each.u.shape for each in calls}) == 1:
                taken.append(name)
                yield _stack(name, model, given, calls, known[name], run.grids.get(name))
        if taken:
            return


def _adds(name: str, block: BlockComposition) -> bool:
    return bool(block.terms)


def _mixes(name: str, block: BlockComposition) -> bool:
    return block.causal is not None


def _of_one_class(calls: list[BlockCall]) -> bool:
    kinds = {type(each.module) for each in calls}
    return len(kinds) == 1 and len(_once(calls)) > 1 and any(calls[0].module.children())


def _once(calls: list[BlockCall]) -> list[BlockCall]:
    """Keep the first call of every block."""
    return list({id(each.module): each for each in reversed(calls)}.values())[::-1]


def _watch(model: nn.Module, given: dict[str, Any]) -> _Run:
    """Run a model and keep the calls of every container's members that keep a shape."""
    if "use_cache" in argument_names(model):
        given = given | {"use_cache": False}  # blocks are called again: nothing may grow
    run, grid = _Run(), list[tuple[int, int]]()
    rows = next((v.shape[0] for v in given.values() if isinstance(v, Tensor) and v.ndim), 0)
    image = any(isinstance(v, Tensor) and v.ndim >= 4 for v in given.values())
    changing: dict[str, int] = {}
    owners = {
        id(child): name
        for name, module in model.named_modules()
        if isinstance(module, CONTAINERS) and not isinstance(module, InsertedLayers)
        for child in module.children()
    }

    def see(module: nn.Module, given: Given, output: Any) -> None:
        name = owners[id(module)]
        out = output[0] if isinstance(output, tuple | list) and output else output
        call = _block_call(module, given, out, rows, image=bool(grid) or image)
        changing[name] = changing.get(name, 0) + (call is None)
        if call is None:
            return
        run.calls.setdefault(name, []).append(call)
        if grid:
            run.grids.setdefault(name, grid[-1])

    def plane(output: Any) -> None:
        if isinstance(output, Tensor) and output.ndim == 4:
            grid.append((output.shape[2], output.shape[3]))

    with Recorder() as recorder:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                recorder.on_output(module, plane)
            if id(module) in owners:
                recorder.on_return(module, partial(see, module))
        call_model(model, (), given)
    run.calls = {
        name: run.calls[name]
        for name, _ in model.named_modules()
        if changing.get(name, 0) < len(run.calls.get(name, ()))  # most keep the shape
    }
    return run


def _block_call(
    module: nn.Module, given: Given, out: Any, rows: int, *, image: bool
) -> BlockCall | None:
    """Read a block's call; four axes are an image's, or several streams that no layer knows."""
    values: list[tuple[int | str, Any]] = [*enumerate(given.args), *given.named.items()]
    key, u = next(((k, v) for k, v in values if _is_field(v)), (0, None))
    if u is None or not _is_field(out) or out.shape != u.shape or (u.ndim == 4 and not image):
        return None
    if u.ndim == 4:
        convs = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.GroupNorm)]
        first = {getattr(m, "in_channels", getattr(m, "num_channels", 0)) for m in convs}
        layout = FieldLayout.BCHW if u.shape[1] in first else FieldLayout.BHWC
    else:
        length_first = u.shape[0] != rows and u.shape[1] == rows
        layout = FieldLayout.LBC if length_first else FieldLayout.BLC
    return BlockCall(module, given, key, u.detach().clone(), out.detach().clone(), layout)


def _is_field(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim in (3, 4)


def _anatomies(parts: list[BlockCall]) -> list[BlockComposition]:
    """Decompose each kind of block once: same class, same modules."""
    known: dict[Any, BlockComposition] = {}
    found = []
    for call in parts:
        kind = type(call.module), tuple(name for name, _ in call.module.named_modules())
        if kind not in known:
            try:
                known[kind] = decompose(call)
            except Exception:  # a block that cannot be called again still has its two ends
                known[kind] = BlockComposition()
        found.append(known[kind])
    return found


def _stack(
    name: str,
    model: nn.Module,
    given: dict[str, Any],
    calls: list[BlockCall],
    anatomies: list[BlockComposition],
    grid: tuple[int, int] | None,
) -> Stack:
    parts = _once(calls)
    roles = [_roles(call, each) for call, each in zip(parts, anatomies, strict=True)]
    shared = set.intersection(*(set(each) for each in roles))
    same = len({(each.norm, len(each.norms), each.parallel) for each in anatomies}) == 1
    count = len(anatomies[0].norms) if same else 0
    ran = [id(each.module) for each in calls]
    blocks = []
    for call, own, anatomy in zip(parts, roles, anatomies, strict=True):
        named = {role: own[role] for role in shared}
        for k in range(count):
            named[f"norm_{k}"] = call.module.get_submodule(anatomy.norms[k])
        view = view_of(call.module, named)
        turns = tuple(k for k, each in enumerate(ran) if each == id(call.module))
        blocks.append(BlockParts(view, call.module, call.layout.features(call.u), turns))
    first = parts[0]
    index = (
        first.key if isinstance(first.key, int) else argument_names(first.module).index(first.key)
    )
    causal = {each.causal for each in anatomies} - {None}
    plane = _plane(first, grid)
    known = False if plane else (causal == {True} if causal else None)
    views = [each.parts for each in blocks]
    padding, cache = argument_roles(model, given, parts, views, causal=known)
    heads = "out" in shared and all(each.parts.num_heads for each in blocks)
    family = Family(
        name=f"traced {type(first.module).__name__}",
        norm=anatomies[0].norm,
        norms=tuple(f"norm_{k}" for k in range(count)),
        parallel=same and anatomies[0].parallel,
        attention=out_of("attention") if "attention" in shared else None,
        ffn=out_of("ffn") if "ffn" in shared else None,
        values=out_of("value") if "value" in shared else None,
        heads=into("out") if heads else None,
        num_heads="num_heads",
        causal=known,
        padding=padding,
        cache=cache,
        entry=into("block", argument=index),
        exit=out_of("block"),
        layout=first.layout,
        plane=plane,
        traced=True,
    )
    return Stack(name, family, blocks)


def _roles(call: BlockCall, anatomy: BlockComposition) -> dict[str, nn.Module]:
    """Name the modules of one block: what it adds, and where heads and values are."""
    block = call.module
    found = {"block": block}
    mixing = [term for term in anatomy.terms if term.mixes]
    acting = [term for term in anatomy.terms if not term.mixes]
    if acting:
        found["ffn"] = block.get_submodule(acting[-1].path)
    if not mixing:
        return found
    found["attention"] = block.get_submodule(mixing[0].path)
    earlier = [term.index for term in anatomy.terms if term.index < mixing[0].index]
    last = [
        path
        for path, k in anatomy.projections.items()
        if max(earlier, default=-1) < k <= mixing[0].index
    ]
    if last:
        found["out"] = block.get_submodule(last[-1])
        for role, names in PROJECTIONS.items():
            if (module := _projection(block, last[-1], names)) is not None:
                found[role] = module
    return found


def _projection(block: nn.Module, out: str, names: tuple[str, ...]) -> nn.Module | None:
    """Find a map by its name, as near to attention's output projection as there is one."""
    owner = out
    while owner:
        owner = owner.rpartition(".")[0]
        near = {
            path.rpartition(".")[2]: module
            for path, module in block.get_submodule(owner).named_modules()
            if is_linear(module)
        }
        found = [name for name in near if name in names]
        if found:  # of several kinds of values (local, global) none is the values
            alone = not any(name.startswith(f"{found[0]}_") for name in near)
            return near[found[0]] if len(found) == 1 and alone else None
    return None


def view_of(block: nn.Module, named: Mapping[str, nn.Module] | None = None) -> Any:
    """Show one block through names that every family found by a run shares.

    Args:
        block: The block.
        named: Its parts by role.
    """
    view: Any = nn.ModuleDict({"block": block, **(named or {})})
    paths = {id(module): path for path, module in block.named_modules()}
    out = paths[id(view["out"])] if "out" in view else ""
    view.layer_idx, view.num_heads = _numbered(block), _heads(block, out)
    return view


def _heads(block: nn.Module, out: str) -> int:
    """Read the number of heads from the module nearest to attention's output projection."""
    owner = out
    while owner:
        owner = owner.rpartition(".")[0]
        for module in block.get_submodule(owner).modules():
            attends = "attention" in type(module).__name__.lower()
            for each in (module, getattr(module, "config", None) if attends else None):
                for name in HEAD_COUNTS:
                    value = getattr(each, name, None)
                    if isinstance(value, int) and not isinstance(value, bool):
                        return value
    return 0


def _numbered(block: nn.Module) -> int:
    for module in block.modules():
        value = getattr(module, "layer_idx", None)
        if isinstance(value, int):
            return value
    return -1


def _plane(first: BlockCall, grid: tuple[int, int] | None) -> Any:
    """Lay the sites of an image out: what the last convolution before the stack gave."""
    own = first.layout.grid(first.u)
    if own is not None:
        plane = Plane(prefix=0, grid=own)
        return lambda model: plane
    length = first.u.shape[1]
    while grid is not None and min(grid) > 1 and grid[0] * grid[1] > length:
        grid = grid[0] // 2, grid[1] // 2
    if grid is None or not 0 <= length - grid[0] * grid[1] <= length // 4 + 2:
        return None
    fixed = Plane(prefix=length - grid[0] * grid[1], grid=grid)
    return lambda model: fixed

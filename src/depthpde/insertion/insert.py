"""Put a layer into a model that exists: the identity at first, trained like any other weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from depthpde.errors import check_flag, check_identifier, check_one_of, shown
from depthpde.insertion.build import Factory, Slot, build, is_causal
from depthpde.insertion.calling import check_batch, check_has_weights
from depthpde.insertion.compiled import check_not_compiled
from depthpde.insertion.families.by_name import stack_at
from depthpde.insertion.families.recognition import recognise
from depthpde.insertion.family import BlockParts, Family, Side, Stack, Tap, attribute, tells
from depthpde.insertion.hooks.container import InsertedLayers, container
from depthpde.insertion.hooks.hook_points import TensorPoint, choose_route, tensor_points
from depthpde.insertion.hooks.tensor_hook import HookedLayer
from depthpde.insertion.insertion import Insertion, Match
from depthpde.insertion.layout import FieldLayout
from depthpde.insertion.recorder import argument_names
from depthpde.insertion.rehearsal import Rehearsal, linear_sizes, rehearse, width_of
from depthpde.insertion.walls import check_walls
from depthpde.layers.registry import PLANE_KINDS
from depthpde.models.position import Position, Route

ORDER = (
    Position.AFTER_EMBEDDING,
    Position.IN_ATTENTION,
    Position.IN_HEADS,
    Position.AFTER_ATTENTION,
    Position.AFTER_FFN,
    Position.BEFORE_NORM,
    Position.BETWEEN_BLOCKS,
)
"""Which of two positions acts first where both act on one tensor, as in `models.block`."""


@dataclass(frozen=True, slots=True)
class PlannedLayer:
    """One layer to build, and where it will act."""

    name: str
    number: int
    block: nn.Module
    place: TensorPoint
    slot: Slot


def insert(
    model: nn.Module,
    position: Position | str | None = None,
    *,
    at: str | None = None,
    name: str | None = None,
    layout: FieldLayout | str = FieldLayout.BLC,
    layer: str | Factory = "diffusion",
    route: Route | str | None = None,
    blocks: Sequence[int] | None = None,
    causal: bool | None = None,
    initial_ratio: float = 0.0,
    family: Family | None = None,
    stack: str | None = None,
    batch: Mapping[str, Any] | None = None,
) -> Insertion:
    """Insert a layer into a model of a known family, as the identity at first.

        u ← D u  at the position,    D = I until its ratio has learned to leave 0

    The model's own keys, weights and outputs are unchanged; the added layers lie under the one
    submodule ``depthpde_insertion``. A causal model gets the upwind form and refuses a symmetric
    layer; a tiny input is run to see that a model called not causal is not. Padding is a no-flux
    wall, whatever the family's convention for masks.

    >>> model = torch.nn.TransformerEncoderLayer(32, 4, batch_first=True)
    >>> inserted = dp.insert(model, "after_ffn")
    >>> inserted.remove()   # the original model, to the bit

    Args:
        model: The model, or the part of it that holds the blocks.
        position: Which of the seven positions.
        at: Instead of a position, any module by its name: the layer acts on what leaves it.
        name: Of this insertion, where several stand side by side at one position: letters, digits
            and underscores. They act in the order in which they were inserted.
        layout: The axes of that tensor: "blc", "lbc", "bcl", "bchw" or "bhwc".
        layer: A name ("diffusion", "adaptive", "multiscale", "depthwise_conv", "token_shift",
            "learned_stencil"), or
            a function called as ``layer(dim, causal=…)`` that builds a module with
            ``forward(u, valid_mask)``; it starts where the function lets it start.
        route: Branch or stream; by default the position's own.
        blocks: Which blocks, from 0; by default all.
        causal: Say True where attention is made causal by a mask that each call brings. Where it
            is neither given nor described, a tiny input is run to find out.
        initial_ratio: Where the ratio starts; 0 for the identity.
        family: The description of a family that is not known here.
        stack: The module that holds the blocks, where a model has several stacks:
            ``stack="model.decoder"``.
        batch: Named arguments that the model can be called with. A model of no known family is
            run once to find its blocks, by default on a tiny input that is made for it.
    """
    where = _where(position, at)
    _check_can_hold(model)
    if causal is not None:
        check_flag("causal", causal)
    if family is not None and not isinstance(family, Family):
        raise ValueError(f"`family` must be a Family, got {shown(family)}; leave it out")
    layout = check_one_of("layout", layout, FieldLayout)
    if stack is not None and not isinstance(stack, str):
        raise ValueError(f"`stack` must be the name of a module, got {shown(stack)}")
    check_not_compiled(model, "inserting")
    check_has_weights(model, "inserting")
    if batch is not None:
        if not isinstance(batch, Mapping):
            raise ValueError(
                f"`batch` must hold the model's arguments by name, got {shown(batch)}; use "
                '{"input_ids": …} with the names of its forward'
            )
        check_batch(model, batch.values(), name="batch")
    if at is not None:
        held = stack_at(model, at, layout, batch)
    else:
        held = recognise(model, family, stack=stack, batch=batch)
    known, found = held.family, held.blocks
    chosen = choose_route(known, where, route)
    _check_switched_off(known, found)
    inserted = container(model, held)
    own = f"{check_identifier('name', name)}_" if name is not None else ""
    prefix = (at or stack or "").replace(".", "_")
    plans = [
        replace(plan, name=own + (prefix if at else f"{prefix}_{plan.name}".lstrip("_")))
        for plan in _plan(
            model, known, found, where, chosen, blocks, causal, described=family is not None
        )
    ]
    for plan in plans:
        if plan.name in inserted:
            raise ValueError(
                f"`{'position' if at is None else 'at'}` {at or where.value!r} holds "
                f"{plan.name!r} already; remove() that insertion first, give this one a name= of "
                "its own, or choose other blocks or the other route"
            )
    layers = [build(layer, plan.slot, initial_ratio) for plan in plans]
    if len({id(each) for each in layers}) < len(layers):
        raise ValueError(
            "`layer` must build a new layer at each call, got one twice: its weights would stand "
            "under several names; build it inside the function"
        )
    inserted.attach(model, held)
    inserted.causal = inserted.causal or plans[0].slot.causal
    rank = 2 * ORDER.index(where) + (chosen is Route.BRANCH)
    for plan, each in zip(plans, layers, strict=True):
        _place(
            model,
            inserted,
            held,
            plan,
            each,
            rank=rank,
            kind=layer if isinstance(layer, str) else None,
        )
    if known.traced and known.plane is None:
        try:
            check_walls(model, held, {plan.name: inserted[plan.name] for plan in plans}, batch)
        except ValueError:
            inserted.discard(model, [plan.name for plan in plans])
            raise
    names = {id(module): name for name, module in model.named_modules()}
    matches = [_match(names, plan) for plan in plans]
    made = Insertion(model, inserted, where, chosen, matches, known)
    made.recipe = {
        "position": None if position is None else where.value,
        "at": at,
        "layout": layout.value,
        "layer": layer,
        "route": chosen.value,
        "blocks": None if blocks is None else list(blocks),
        "causal": causal,
        "initial_ratio": initial_ratio,
        "stack": stack,
    } | ({} if name is None else {"name": name})
    made.name = name
    return made


def _where(position: Position | str | None, at: str | None) -> Position:
    """Read the position; behind one named module is where a block ends."""
    if position is not None and at is None:
        return check_one_of("position", position, Position)
    if position is None and at is not None:
        return Position.BETWEEN_BLOCKS
    raise ValueError(
        f"`position` or `at` must be given, one of the two, got {position!r} and {at!r}; "
        "a position names a place in every block, at= one module"
    )


def _check_can_hold(model: nn.Module) -> None:
    if isinstance(model, nn.Sequential | nn.ModuleList | nn.ModuleDict):
        raise ValueError(
            f"`model` must be able to hold a further submodule, got a {type(model).__name__}, "
            "which would run it as one of its own; pass the module that holds it, or wrap it"
        )


def _plan(
    model: nn.Module,
    family: Family,
    found: Sequence[BlockParts],
    position: Position,
    route: Route,
    blocks: Sequence[int] | None,
    causal: bool | None,
    *,
    described: bool,
) -> list[PlannedLayer]:
    several = tensor_points(family, position, route)
    rehearsal = Rehearsal()
    own = family.is_causal(found[0].parts)
    known = own is True or (family.traced and own is not None)
    if family.plane is None and (described or not known):
        rehearsal = rehearse(model, family, found, [place.tap for place in several])
    upwind = _choose_causal(family, found[0].parts, causal, rehearsal)
    grid = None if family.plane is None else family.plane(model).grid
    plans = []
    for number in _choose_blocks(position, blocks, len(found)):
        block = found[number].parts
        heads = position is Position.IN_HEADS and family.num_heads
        for k, place in enumerate(several):
            weight = _like(block.get_submodule(family.width), block)
            slot = Slot(
                dim=rehearsal.widths.get((number, place.tap))
                or _dim(family, found[number], place.tap),
                causal=upwind,
                num_heads=_whole(attribute(block, family.num_heads)) if heads else None,
                grid=grid,
                device=weight.device,
                dtype=torch.promote_types(weight.dtype, torch.float32),
            )
            name = f"{position.value}_{route.value}_{number}" + f"_{k}" * (len(several) > 1)
            plans.append(PlannedLayer(name, number, block, place, slot))
    return plans


def _place(
    model: nn.Module,
    inserted: InsertedLayers,
    held: Stack,
    plan: PlannedLayer,
    layer: nn.Module,
    *,
    rank: int,
    kind: str | None,
) -> None:
    layer.train(model.training)
    inserted[plan.name] = layer
    plane = held.family.plane
    may_be_causal = bool(held.family.causal_arguments)  # only then does it matter
    placed = HookedLayer(
        name=plan.name,
        layer=layer,
        rank=rank,
        causal=plan.slot.causal or (may_be_causal and is_causal(layer, plan.slot.dim)),
        carried=bool(plan.place.rejoin),
        plane=None if plane is None else plane(model),
        rows=kind is not None and kind not in PLANE_KINDS,
        planar=kind in PLANE_KINDS,
        segments="segments" in argument_names(layer),
    )
    inserted.hooks[held.name][plan.number].add(plan.place, placed)


def _match(names: dict[int, str], plan: PlannedLayer) -> Match:
    tap = plan.place.tap
    name = names[id(plan.block.get_submodule(tap.path))]
    return Match(plan.name, name or "(model)", tap.side, plan.slot.dim)


def _choose_blocks(position: Position, blocks: Sequence[int] | None, count: int) -> list[int]:
    if blocks is not None and not isinstance(blocks, list | tuple | range):
        raise ValueError(
            f"`blocks` must be a list of block numbers, got {blocks!r}; write blocks=[{blocks!r}]"
        )
    if position is Position.AFTER_EMBEDDING:
        if blocks is not None:
            raise ValueError(
                f"`blocks` must be left out at 'after_embedding', got {list(blocks)}: "
                "it acts once, before the first block"
            )
        return [0]
    chosen = list(range(count)) if blocks is None else list(blocks)
    if not chosen:
        raise ValueError(f"`blocks` must name at least one block out of 0 to {count - 1}, got []")
    for number in chosen:
        if not isinstance(number, int) or not 0 <= number < count:
            raise ValueError(
                f"`blocks` must lie in 0 to {count - 1} (the model has {count}), got {number!r}"
            )
        if chosen.count(number) > 1:
            raise ValueError(f"`blocks` must name each block once, got {number} twice")
    return chosen


def _choose_causal(
    family: Family, block: nn.Module, asked: bool | None, rehearsal: Rehearsal
) -> bool:
    """Decide between the upwind and the symmetric form; refuse the wrong one."""
    own = family.is_causal(block)
    described = family.causal is True or (own and tells(block, str(family.causal)))
    if asked is False and described:
        raise ValueError(
            f"`causal` must not be False in {family.name}, which is causal: a symmetric layer "
            "would show every site its future; leave it out for the upwind form"
        )
    if asked and family.plane is not None:
        raise ValueError(
            f"`causal` must be left out in {family.name}: the sites of an image "
            "have no order; diffusion over its plane is symmetric"
        )
    stated = own if asked is None else asked
    if stated is False and rehearsal.causal:
        raise ValueError(
            f"`causal` must not be False here, got it from {_whose(family, asked)}: in a trial no "
            "site saw its future, so a symmetric layer would leak it; leave it out, or say "
            "causal=True, for the upwind form"
        )
    if stated is None and rehearsal.causal is None:
        raise ValueError(
            f"`causal` must be given for {family.name}, got None, and it could not be found out: "
            f"{rehearsal.reason}; say causal=True if a site must not see its future (the upwind "
            "form, always safe), causal=False if it may"
        )
    return bool(rehearsal.causal if stated is None else stated)


def _whose(family: Family, asked: bool | None) -> str:
    return f"the description of {family.name}" if asked is None else "the call"


def _check_switched_off(family: Family, found: Sequence[BlockParts]) -> None:
    for name in family.must_be_off:
        for block in found:
            value = getattr(block.parts, name, 0)
            if value:
                raise ValueError(
                    f"`{name}` must be off where something is inserted, got {value}: the block "
                    f"would run in pieces that do not see each other; set config.{name} = 0"
                )


def _dim(family: Family, block: BlockParts, tap: Tap) -> int:
    """Read how many features a tensor has from the linear maps it enters or leaves."""
    inner = tap in (family.values, family.heads)
    if block.dim and not inner:  # everything on the stream, or added to it, is as wide
        return block.dim
    sizes = linear_sizes(block.parts.get_submodule(tap.path))
    if sizes is None:
        return width_of(family, block.parts)
    return sizes[0] if tap.side is Side.INPUT else sizes[1] // tap.part[1]


def _like(module: nn.Module, block: nn.Module) -> Tensor:
    """Find a weight that tells device and precision; a quantized module may hold none."""
    weights = (*module.parameters(), *block.parameters(), *block.buffers())
    return next((each for each in weights if each.is_floating_point()), torch.zeros(()))


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value

"""From a position and a route to the tensors of a block, for any described family.

Pre-norm:     u₁ = u + Attn(LN u)          u₂ = u₁ + FFN(LN u₁)
Post-norm:    u₁ = LN(u + Attn(u))         u₂ = LN(u₁ + FFN(u₁))

    position          branch                  stream, pre-norm      stream, post-norm
    after embedding                           u of the first block
    before norm       what a norm reads       u and u₁              what a norm reads
    in attention      the values
    in heads          the heads' outputs
    after attention   Attn(…)                 u₁                    u + Attn(u)
    after ffn         FFN(…)                  u₂                    u₁ + FFN(u₁)
    between blocks                            u₂                    u₂

In a post-norm block the norm acts on the stream, so both routes before it are the same. These
are the definitions of `models.block`.
"""

from __future__ import annotations

from dataclasses import dataclass

from depthpde.errors import check_one_of
from depthpde.insertion.family import Family, NormOrder, Tap, into
from depthpde.models.position import ROUTES, Position, Route


@dataclass(frozen=True, slots=True)
class TensorPoint:
    """A tensor to act on, and where the change must be added to the rest of the stream.

    Inside a pre-norm block the stream u₁ reaches a hook only where the norm reads it; the copy
    that skips over the branch does not pass through any module. So the layer acts on what the norm
    reads, and the difference D u₁ − u₁ is added where that copy is next seen:

        u₁ + FFN(LN D u₁) + (D u₁ − u₁) = D u₁ + FFN(LN D u₁)
    """

    tap: Tap
    rejoin: tuple[Tap, ...] = ()


def available(family: Family) -> dict[Position, tuple[Route, ...]]:
    """List the positions that a family has, with their routes, the default first."""
    table = _table(family)
    found = {
        position: tuple(route for route in routes if (position, route) in table)
        for position, routes in ROUTES.items()
    }
    return {position: routes for position, routes in found.items() if routes}


def choose_route(family: Family, position: Position, route: Route | str | None) -> Route:
    """Return the chosen route or the default; an error lists what this family has."""
    offered = available(family)
    if position not in offered:
        raise ValueError(
            f"`position` {position.value!r} cannot be had in {family.name}: "
            f"{family.reasons.get(position, 'its description names no such place')}; "
            f"it has {', '.join(offered)}"
        )
    if route is None:
        return offered[position][0]
    chosen = check_one_of("route", route, Route)
    if chosen not in offered[position]:
        raise ValueError(
            f"`route` {chosen.value!r} cannot be had at {position.value!r}; "
            f"it has {', '.join(offered[position])}"
        )
    return chosen


def tensor_points(family: Family, position: Position, route: Route) -> tuple[TensorPoint, ...]:
    """Give the tensors of a block that a position and a route mean."""
    return _table(family)[position, route]


def _table(family: Family) -> dict[tuple[Position, Route], tuple[TensorPoint, ...]]:
    norms = tuple(TensorPoint(into(norm)) for norm in family.norms)
    entering, leaving = _entering(family), TensorPoint(family.exit)
    inside: tuple[TensorPoint, ...] = norms
    after_attention, after_ffn = norms[:1], norms[-1:]
    if family.norm is NormOrder.PRE:
        count = 0 if family.parallel else len(family.norms)
        between = tuple(_inside(family, k) for k in range(1, count))
        inside = (entering, *between) if norms else ()
        after_attention, after_ffn = between[:1], (leaving,)
    table = {
        (Position.AFTER_EMBEDDING, Route.STREAM): (entering,),
        (Position.BEFORE_NORM, Route.BRANCH): norms,
        (Position.BEFORE_NORM, Route.STREAM): inside,
        (Position.AFTER_ATTENTION, Route.BRANCH): _at(family.attention),
        (Position.AFTER_ATTENTION, Route.STREAM): after_attention,
        (Position.AFTER_FFN, Route.BRANCH): _at(family.ffn),
        (Position.AFTER_FFN, Route.STREAM): after_ffn,
        (Position.BETWEEN_BLOCKS, Route.STREAM): (leaving,),
        (Position.IN_ATTENTION, Route.BRANCH): _at(family.values),
        (Position.IN_HEADS, Route.BRANCH): _at(family.heads),
    }
    return {where: points for where, points in table.items() if points}


def _at(tap: Tap | None) -> tuple[TensorPoint, ...]:
    return () if tap is None else (TensorPoint(tap),)


def _entering(family: Family) -> TensorPoint:
    """Give the stream as it enters a block."""
    if family.residuals:
        return TensorPoint(family.entry, (into(family.residuals[0], argument=1),))
    return TensorPoint(family.entry)


def _inside(family: Family, k: int) -> TensorPoint:
    """Give the stream in front of norm k of a pre-norm block."""
    tap = into(family.norms[k])
    if family.residuals:
        return TensorPoint(tap, (into(family.residuals[k], argument=1),))
    return TensorPoint(tap, (*map(into, family.norms[k + 1 :]), family.exit))

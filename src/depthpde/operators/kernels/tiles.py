"""Small products whose sums stay in registers until they are whole.

    tile_rc ← tile_rc + Σ_k a_rk b_kc        r: a few rows,  c: the lanes of one or two registers

Each step of k reads one number a row and one register a column of the tile, so the more rows a
tile has, the fewer loads a product takes. Written as LLVM instructions for the reason that `lanes`
gives; numbers of rows and registers are constants of the kernel that calls.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from depthpde.operators.kernels.lanes import (
    REGISTER,
    Lanes,
    build_exp2,
    build_fma,
    build_largest,
    build_spread,
    computed,
)

ROWS = 8 if REGISTER == 64 else 4
"""Rows of a tile two registers wide: its sums take half of all registers."""
LINES = 2 * ROWS
"""Rows of a tile one register wide."""

_I64 = ir.IntType(64)


class Tile(types.Type):  # type: ignore[misc]
    """The numba type of rows of whole registers."""

    def __init__(self, scalar: types.Float, rows: int, columns: int) -> None:
        self.lanes, self.rows, self.columns = Lanes(scalar), rows, columns
        super().__init__(name=f"Tile({scalar}, {rows}, {columns})")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Tile) -> None:
        lanes = manager.lookup(kind.lanes).get_value_type()
        super().__init__(manager, kind, ir.ArrayType(lanes, kind.rows * kind.columns))


def _places(
    context: Any, builder: Any, array: types.Array, given: tuple[Any, Any, Any], kind: Tile
) -> list[Any]:
    """Give the address of every register of a tile that lies in an array, rows a stride apart."""
    values, at, stride = given
    data = context.make_array(array)(context, builder, values).data
    lanes = context.get_value_type(kind.lanes)
    return [
        builder.bitcast(
            builder.gep(
                data,
                [
                    builder.add(
                        builder.add(at, builder.mul(stride, _I64(row))), _I64(column * lanes.count)
                    )
                ],
            ),
            lanes.as_pointer(),
        )
        for row in range(kind.rows)
        for column in range(kind.columns)
    ]


@intrinsic(prefer_literal=True)
def load_tile(
    _: Any, array: types.Array, at: Any, stride: Any, rows: types.Literal, columns: types.Literal
) -> Any:
    """Read rows of whole registers, a stride apart."""
    kind = Tile(computed(array.dtype), rows.literal_value, columns.literal_value)

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, array, args[:3], kind)
        loaded = [builder.load(place, align=array.dtype.bitwidth // 8) for place in places]
        return cgutils.pack_array(builder, loaded)

    return kind(array, types.intp, types.intp, rows, columns), make


@intrinsic
def store_tile(_: Any, array: types.Array, at: Any, stride: Any, tile: Tile) -> Any:
    """Write a tile, its rows a stride apart."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = _places(context, builder, array, args[:3], tile)
        for place, value in zip(places, cgutils.unpack_tuple(builder, args[3]), strict=True):
            builder.store(value, place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, tile), make


@intrinsic(prefer_literal=True)
def same_rows(_: Any, rows: types.Literal, first: Lanes, second: Lanes) -> Any:
    """Give a tile of two registers whose rows are all alike."""
    kind = Tile(first.scalar, rows.literal_value, 2)

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.pack_array(builder, list(args[1:]) * kind.rows)

    return kind(rows, first, second), make


@intrinsic
def add_product(
    _: Any,
    tile: Tile,
    a: types.Array,
    at: Any,
    row: Any,
    column: Any,
    b: types.Array,
    to: Any,
    line: Any,
    count: Any,
) -> Any:
    """Give tile_r + Σ_k a[at + r · row + k · column] · b[to + k · line]."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start, values, place, row, column, others, to, line, count = args
        numbers = context.make_array(a)(context, builder, values).data
        sums = cgutils.unpack_tuple(builder, start)
        one = Tile(tile.lanes.scalar, 1, tile.columns)
        entry, loop = builder.block, builder.append_basic_block("product")
        end = builder.append_basic_block("whole")
        builder.cbranch(builder.icmp_signed(">", count, _I64(0)), loop, end)

        builder.position_at_end(loop)
        index = builder.phi(_I64)
        held = [builder.phi(each.type) for each in sums]
        index.add_incoming(_I64(0), entry)
        from_b = (others, builder.add(to, builder.mul(index, line)), _I64(0))
        wide = [
            builder.load(each, align=b.dtype.bitwidth // 8)
            for each in _places(context, builder, b, from_b, one)
        ]
        here = builder.add(place, builder.mul(index, column))
        added: list[Any] = []
        for r in range(tile.rows):
            at_row = builder.add(here, builder.mul(row, _I64(r)))
            number = builder.load(builder.gep(numbers, [at_row]))
            factor = build_spread(builder, number, wide[0].type)
            for c in range(tile.columns):
                added.append(build_fma(builder, factor, wide[c], held[len(added)]))
        after = builder.add(index, _I64(1))
        index.add_incoming(after, loop)
        builder.cbranch(builder.icmp_signed("<", after, count), loop, end)

        builder.position_at_end(end)
        results = []
        for first, phi, last in zip(sums, held, added, strict=True):
            phi.add_incoming(first, entry)
            phi.add_incoming(last, loop)
            result = builder.phi(phi.type)
            result.add_incoming(first, entry)
            result.add_incoming(last, loop)
            results.append(result)
        return cgutils.pack_array(builder, results)

    numbers = (types.intp,) * 3
    return tile(tile, a, *numbers, b, *numbers), make


def _each(tile: Tile, build: Callable[..., Any], *others: Any) -> Any:
    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = (cgutils.unpack_tuple(builder, each) for each in args)
        return cgutils.pack_array(
            builder, [build(builder, *each) for each in zip(*parts, strict=True)]
        )

    return tile(tile, *others), make


@intrinsic
def exp2_tile(_: Any, tile: Tile) -> Any:
    """Give 2^x of every number."""
    return _each(tile, build_exp2)


@intrinsic
def times_tile(_: Any, tile: Tile, other: Tile) -> Any:
    """Give the product of two tiles, number by number."""
    return _each(tile, lambda builder, x, y: builder.fmul(x, y, flags=("contract",)), other)


@intrinsic
def largest_row(_: Any, tile: Tile, first: Lanes, second: Lanes) -> Any:
    """Give the largest number in each lane of a tile of two registers, or the one given."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = cgutils.unpack_tuple(builder, args[0])
        tops = []
        for column, top in enumerate(args[1:]):
            for each in parts[column::2]:
                top = build_largest(builder, top, each)
            tops.append(top)
        return context.make_tuple(builder, pair, tops)

    pair = types.UniTuple(first, 2)
    return pair(tile, first, second), make


@intrinsic
def turned(_: Any, tile: Tile) -> Any:
    """Give rows as columns: a tile of one register a row, and as many rows as it has lanes."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = cgutils.unpack_tuple(builder, args[0])
        lanes, apart = range(tile.rows), 1
        index = ir.VectorType(ir.IntType(32), tile.rows)
        while apart < tile.rows:  # blocks of this size change places with their mirror images
            first = [c if not c & apart else c + tile.rows - apart for c in lanes]
            second = [c + apart if not c & apart else c + tile.rows for c in lanes]
            for r in (r for r in lanes if not r & apart):
                pair = rows[r], rows[r + apart]
                rows[r] = builder.shuffle_vector(*pair, ir.Constant(index, first))
                rows[r + apart] = builder.shuffle_vector(*pair, ir.Constant(index, second))
            apart *= 2
        return cgutils.pack_array(builder, rows)

    return tile(tile), make

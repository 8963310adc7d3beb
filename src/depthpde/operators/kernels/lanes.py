"""Several numbers that pass the processor together, whatever precision they are stored in.

    x = load(array, at)        N numbers from place `at` on, in the precision of computation
    store(array, at, x)        the same numbers, rounded once to the precision of storage

Storage is float64, float32, bfloat16 (shown to numba as uint16) or float16 (shown as int16);
computation is float64 for float64 and float32 for the rest. N fills the widest registers of this
processor: `width(array)`. Written as LLVM instructions, since a compiler that looks for such
groups by itself gives up on loops that keep a dozen of them in registers.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray
from torch import Tensor

_FEATURES = llvm.get_host_cpu_features()
REGISTER = 64 if _FEATURES.get("avx512f") and _FEATURES.get("avx512dq") else 32
"""Bytes in one register of this processor, at least those of two of the narrower kind."""
FLOATS = REGISTER // 4

_CONTRACT = ("contract",)  # a product and a sum may be one instruction, rounded once
_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
_F16, _F32 = ir.HalfType(), ir.FloatType()
_VIEWS = {torch.bfloat16: torch.uint16, torch.float16: torch.int16}


def show(tensor: Tensor) -> NDArray[Any]:
    """Show a contiguous CPU tensor to numba as one flat array, without a copy."""
    array = (tensor if tensor.itemsize > 2 else tensor.view(_VIEWS[tensor.dtype])).numpy()
    return array.reshape(-1)


class Lanes(types.Type):  # type: ignore[misc]
    """The numba type of N numbers of one precision of computation."""

    def __init__(self, scalar: types.Float) -> None:
        self.scalar = scalar
        super().__init__(name=f"Lanes({scalar})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(_llvm_float(kind.scalar), _count(kind)))


def _llvm_float(scalar: types.Float) -> ir.Type:
    return ir.DoubleType() if scalar == types.float64 else _F32


def _count(kind: Lanes) -> int:
    return REGISTER * 8 // int(kind.scalar.bitwidth)


def computed(stored: types.Type) -> types.Float:
    """Give the precision that numbers stored like this are computed in."""
    return types.float64 if stored == types.float64 else types.float32


def _vector(scalar: ir.Type, count: int | None) -> ir.Type:
    return scalar if count is None else ir.VectorType(scalar, count)


def _constant(value: int, count: int | None) -> ir.Constant:
    return ir.Constant(_vector(_I32, count), value if count is None else [value] * count)


def _widen(builder: Any, stored: types.Type, value: Any, count: int | None) -> Any:
    """Turn stored bits into numbers to compute with."""
    if stored == types.uint16:  # a bfloat16 is the upper half of a float32
        bits = builder.shl(builder.zext(value, _vector(_I32, count)), _constant(16, count))
        return builder.bitcast(bits, _vector(_F32, count))
    if stored == types.int16:
        return builder.fpext(builder.bitcast(value, _vector(_F16, count)), _vector(_F32, count))
    return value


def _narrow(builder: Any, stored: types.Type, value: Any, count: int | None) -> Any:
    """Round numbers to the nearest that can be stored, to even where two are as near."""
    if stored == types.uint16:
        bits = builder.bitcast(value, _vector(_I32, count))
        high = builder.lshr(bits, _constant(16, count))
        odd = builder.and_(high, _constant(1, count))
        up = builder.add(builder.add(bits, _constant(0x7FFF, count)), odd)
        no_number = builder.fcmp_unordered("uno", value, value)
        rounded = builder.lshr(up, _constant(16, count))
        result = builder.select(no_number, _constant(0x7FC0, count), rounded)
        return builder.trunc(result, _vector(_I16, count))
    if stored == types.int16:
        return builder.bitcast(builder.fptrunc(value, _vector(_F16, count)), _vector(_I16, count))
    return value


def _place(context: Any, builder: Any, kind: types.Array, args: Any, count: int | None) -> Any:
    data = context.make_array(kind)(context, builder, args[0]).data
    wanted = _vector(context.get_data_type(kind.dtype), count).as_pointer()
    return builder.bitcast(builder.gep(data, [args[1]]), wanted)


def _reader(array: types.Array, kind: types.Type, count: int | None) -> Any:
    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, array, args, count)
        value = builder.load(place, align=array.dtype.bitwidth // 8)
        return _widen(builder, array.dtype, value, count)

    return kind(array, types.intp), make


def _writer(array: types.Array, kind: types.Type, count: int | None) -> Any:
    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, array, args, count)
        value = _narrow(builder, array.dtype, args[2], count)
        builder.store(value, place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, kind), make


@intrinsic
def aligned(_: Any, numbers: types.Integer, like: types.Array) -> Any:
    """Give zeros that begin at a cache line, so that no load spans two; freed with the kernel."""
    kind = types.Array(like.dtype, 1, "C")

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        dtype = context.get_data_type(kind.dtype)
        item = ir.Constant(_I64, context.get_abi_sizeof(dtype))
        size = builder.mul(args[0], item)
        memory = context.nrt.meminfo_alloc_aligned(builder, size, ir.Constant(_I32, 64))
        data = context.nrt.meminfo_data(builder, memory)
        cgutils.memset(builder, data, size, 0)
        array = context.make_array(kind)(context, builder)
        populate_array(
            array, data=builder.bitcast(data, dtype.as_pointer()), shape=[args[0]],
            strides=[item], itemsize=item, meminfo=memory,
        )  # fmt: skip
        return array._getvalue()

    return kind(types.intp, like), make


@intrinsic
def load(_: Any, array: types.Array, at: types.Integer) -> Any:
    """Read N numbers from place `at` on."""
    kind = Lanes(computed(array.dtype))
    return _reader(array, kind, _count(kind))


@intrinsic
def fetch(_: Any, array: types.Array, at: types.Integer) -> Any:
    """Ask for the cache line of place `at`, which will be read or written soon."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.bitcast(_place(context, builder, array, args, None), _BYTES)
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, _I32(0), _I32(2), _I32(1)])  # to read; to the second level
        return context.get_dummy_value()

    return types.void(array, types.intp), make


@intrinsic
def store(_: Any, array: types.Array, at: types.Integer, value: Lanes) -> Any:
    """Write N numbers from place `at` on, rounded once."""
    return _writer(array, value, _count(value))


@intrinsic
def get(_: Any, array: types.Array, at: types.Integer) -> Any:
    """Read one number."""
    return _reader(array, computed(array.dtype), None)


@intrinsic
def put(_: Any, array: types.Array, at: types.Integer, value: types.Float) -> Any:
    """Write one number, rounded once."""
    return _writer(array, computed(array.dtype), None)


@intrinsic
def width(_: Any, array: types.Array) -> Any:
    """Give N for an array of this precision."""
    count = _count(Lanes(computed(array.dtype)))
    return types.intp(array), lambda *_: ir.Constant(ir.IntType(64), count)


@intrinsic
def zeros(_: Any, array: types.Array) -> Any:
    """Give N zeros."""
    kind = Lanes(computed(array.dtype))

    def make(context: Any, *_: Any) -> Any:
        return ir.Constant(context.get_value_type(kind), None)

    return kind(array), make


@intrinsic
def spread(_: Any, array: types.Array, value: types.Float) -> Any:
    """Give one number N times."""
    kind = Lanes(computed(array.dtype))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return build_spread(builder, args[1], context.get_value_type(kind))

    return kind(array, kind.scalar), make


def build_spread(builder: Any, value: Any, vector: Any) -> Any:
    """Write the instructions of `spread`."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _I32(0))
    mask = ir.Constant(ir.VectorType(_I32, vector.count), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


@intrinsic
def total(_: Any, value: Lanes) -> Any:
    """Sum the N numbers, halves first."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, count = args[0], _count(value)
        while count > 1:
            count //= 2
            index = ir.VectorType(_I32, count)
            halves = [
                builder.shuffle_vector(
                    vector, vector, ir.Constant(index, list(range(first, first + count)))
                )
                for first in (0, count)
            ]
            vector = builder.fadd(*halves)
        return builder.extract_element(vector, _I32(0))

    return value.scalar(value), make


@intrinsic
def plus(_: Any, a: Lanes, b: Lanes) -> Any:
    """Give a + b."""
    return a(a, b), lambda context, builder, signature, args: builder.fadd(*args, flags=_CONTRACT)


@intrinsic
def minus(_: Any, a: Lanes, b: Lanes) -> Any:
    """Give a − b."""
    return a(a, b), lambda context, builder, signature, args: builder.fsub(*args, flags=_CONTRACT)


@intrinsic
def times(_: Any, a: Lanes, b: Lanes) -> Any:
    """Give a · b."""
    return a(a, b), lambda context, builder, signature, args: builder.fmul(*args, flags=_CONTRACT)


@intrinsic
def over(_: Any, a: Lanes, b: Lanes) -> Any:
    """Give a / b."""
    return a(a, b), lambda context, builder, signature, args: builder.fdiv(*args)


@intrinsic
def fma(_: Any, a: Lanes, b: Lanes, c: Lanes) -> Any:
    """Give a · b + c."""
    return a(a, b, c), lambda context, builder, signature, args: build_fma(builder, *args)


def build_fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Write the instructions of `fma`."""
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


@intrinsic
def largest(_: Any, a: Lanes, b: Lanes) -> Any:
    """Give max(a, b); a where that is no number."""
    return a(a, b), lambda context, builder, signature, args: build_largest(builder, *args)


def build_largest(builder: Any, a: Any, b: Any) -> Any:
    """Write the instructions of `largest`."""
    return builder.select(builder.fcmp_unordered(">", a, b), a, b)


@intrinsic
def above_zero(_: Any, x: Lanes, a: Lanes, b: Lanes) -> Any:
    """Give a where x > 0, else b; b where x is no number."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(context.get_value_type(x), None)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), *args[1:])

    return a(x, a, b), make


_EXP2 = (
    1.0000000710297,
    0.6931469491610639,
    0.24022121753561743,
    0.055507426160027545,
    0.00967545974551718,
    0.0013266970386200765,
)
"""2^f on [−½, ½] as a polynomial, relative error 8e-8: least squares at Chebyshev's nodes."""
_ROUND = 12582912.0  # 1.5 · 2²³: added and taken off again, a number up to 2²² is rounded


@intrinsic
def exp2(_: Any, x: Lanes) -> Any:
    """Give 2^x in float32, to two units in the last place; 0 below 2⁻¹²⁶, no number stays none.

    x = n + f with n whole: 2^f by a polynomial, n added to its exponent. From 2¹²⁷ on it overflows
    into the sign: for x ≤ 0 only.
    """
    if x.scalar != types.float32:
        return None
    return x(x), lambda context, builder, signature, args: build_exp2(builder, *args)


def build_exp2(builder: Any, x: Any) -> Any:
    """Write the instructions of `exp2`."""
    if REGISTER == 64:
        return _build_exp2_by_scaling(builder, x)
    count = x.type.count
    floats, ints = ir.VectorType(_F32, count), ir.VectorType(_I32, count)

    def number(value: float) -> Any:
        return ir.Constant(floats, [float(np.float32(value))] * count)

    rounded = builder.fadd(x, number(_ROUND))
    rest = builder.fsub(x, builder.fsub(rounded, number(_ROUND)))
    power = number(_EXP2[-1])
    for each in _EXP2[-2::-1]:
        power = build_fma(builder, power, rest, number(each))
    exponent = builder.shl(builder.bitcast(rounded, ints), _constant(23, count))
    bits = builder.add(builder.bitcast(power, ints), exponent)
    normal = builder.fcmp_unordered(">", x, number(-126.0))
    return builder.select(normal, builder.bitcast(bits, floats), number(0.0))


_EXP2_FLOOR = (
    0.99999992506362,
    0.6931530731948565,
    0.24015361709027974,
    0.05582631791742534,
    0.00898934025238219,
    0.0018775766083060242,
)
"""2^f on [0, 1] as a polynomial, relative error 8e-8."""


def _build_exp2_by_scaling(builder: Any, x: Any) -> Any:
    """Do the same with two instructions of AVX-512: x − ⌊x⌋, and y · 2^⌊x⌋."""
    floats, bits = x.type, ir.IntType(16)
    none, all_lanes, rounding = ir.Constant(floats, None), bits(0xFFFF), _I32(4)

    def call(name: str, *args: Any) -> Any:
        kind = ir.FunctionType(floats, [each.type for each in args])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx512.{name}")
        return builder.call(function, args)

    def number(value: float) -> Any:
        return ir.Constant(floats, [float(np.float32(value))] * floats.count)

    down = _I32(9)  # towards −∞, and no exception where digits are lost
    rest = call("mask.reduce.ps.512", x, down, none, all_lanes, rounding)
    power = number(_EXP2_FLOOR[-1])
    for each in _EXP2_FLOOR[-2::-1]:
        power = build_fma(builder, power, rest, number(each))
    normal = builder.bitcast(builder.fcmp_unordered(">", x, number(-126.0)), bits)
    return call("mask.scalef.ps.512", power, x, none, normal, rounding)


@lru_cache(maxsize=64)
def scalars(kind: np.dtype[Any], *values: float) -> tuple[np.floating[Any], ...]:
    """Give numbers in an array's own precision, so that nothing is promoted."""
    return tuple(kind.type(value) for value in values)

"""A kernel's tasks on the very threads that torch computes with.

    every thread:   while (portion ← next++) < portions:  kernel(arguments, first task, last task)

torch's threads spin for some milliseconds after each of its operations. Threads of our own would
compete with them for the same cores, be woken for every call and need the interpreter; the OpenMP
library that torch is linked with lends its own in two microseconds. Which thread takes which
portion is left to chance, so a portion may depend on no other.

Arrays reach the kernel without their reference counts: all threads share those, and every view
that a kernel takes would fetch the same few cache lines from the other core.
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler import Flags
from numba.extending import intrinsic

_I32, _I64, _BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_BODY = ir.FunctionType(ir.VoidType(), [_BYTES])
_BEGIN = ir.FunctionType(ir.VoidType(), [_BODY.as_pointer(), _BYTES, _I32, _I32])
_ARGUMENTS, _NEXT, _PORTIONS, _TASKS, _FAILED = range(5)

_forked: list[int] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _forked.append(os.getpid()))


def num_threads() -> int:
    """Count the threads a kernel may use: torch's, or one where those cannot be had.

    They cannot in a forked child, which has none of its parent's threads, nor where torch is
    built on another library than OpenMP.
    """
    count = torch.get_num_threads()
    return count if count == 1 or (region() and not _forked) else 1


@cache
def region() -> int:
    """Give the address of OpenMP's ``GOMP_parallel(body, data, threads, flags)``, 0 if none.

    It is looked up through torch's own library, so that it is of the runtime that torch uses.
    """
    if not torch.backends.openmp.is_available():  # type: ignore[no-untyped-call]
        return 0
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            found = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0


@intrinsic
def share(
    _: Any,
    kernel: types.Dispatcher,
    arguments: types.BaseTuple,
    begin: types.Integer,
    threads: types.Integer,
    portions: types.Integer,
    tasks: types.Integer,
) -> Any:
    """Run a kernel over all its tasks, in portions; give 1 if one of them failed, else 0."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kept = ir.LiteralStructType([context.get_value_type(arguments), *[_I64] * 4])
        data = cgutils.alloca_once(builder, kept)
        for place, value in (
            (_ARGUMENTS, args[1]), (_NEXT, _I64(0)), (_PORTIONS, args[4]), (_TASKS, args[5]),
            (_FAILED, _I64(0)),
        ):  # fmt: skip
            builder.store(value, _field(builder, data, place))
        body = _body(context, builder, kept, kernel.dispatcher, arguments.types)
        given = builder.bitcast(data, _BYTES)
        with builder.if_else(builder.icmp_signed("<=", args[3], _I64(1))) as (alone, together):
            with alone:
                builder.call(body, [given])
            with together:
                start = builder.inttoptr(args[2], _BEGIN.as_pointer())
                builder.call(start, [body, given, builder.trunc(args[3], _I32), _I32(0)])
        return builder.load(_field(builder, data, _FAILED))

    return types.int64(kernel, arguments, *(types.int64,) * 4), make


def _body(context: Any, outer: Any, kept: ir.Type, kernel: Any, kinds: Any) -> Any:
    """Write what each thread does, as a function of the data alone."""
    name = outer.module.get_unique_name("take_portions")
    body = ir.Function(outer.module, _BODY, name)
    body.linkage = "internal"
    entry, take, work, end = (
        body.append_basic_block(block) for block in ("entry", "take", "work", "end")
    )
    builder = ir.IRBuilder(entry)
    data = builder.bitcast(body.args[0], kept.as_pointer())
    values = builder.load(_field(builder, data, _ARGUMENTS))
    portions = builder.load(_field(builder, data, _PORTIONS))
    tasks = builder.load(_field(builder, data, _TASKS))
    each = [
        _uncounted(context, builder, kind, builder.extract_value(values, k))
        for k, kind in enumerate(kinds)
    ]
    builder.branch(take)

    builder.position_at_end(take)
    portion = builder.atomic_rmw("add", _field(builder, data, _NEXT), _I64(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", portion, portions), work, end)

    builder.position_at_end(work)
    bounds = (
        builder.sdiv(builder.mul(number, tasks), portions)
        for number in (portion, builder.add(portion, _I64(1)))
    )
    signature = types.none(*kinds, types.intp, types.intp)
    compiled = _compile(context, outer, kernel, signature)
    status, _ = context.call_internal_no_propagate(builder, compiled, signature, [*each, *bounds])
    with builder.if_then(status.is_error, likely=False):
        builder.store(_I64(1), _field(builder, data, _FAILED))
    builder.branch(take)

    builder.position_at_end(end)
    builder.ret_void()
    return body


def _compile(context: Any, builder: Any, kernel: Any, signature: Any) -> Any:
    """Compile the kernel into the function that shares it out, not as one of its own."""
    flags = Flags()
    kernel.targetdescr.options.parse_as_flags(flags, kernel.targetoptions)
    made = context.compile_subroutine(
        builder, kernel.py_func, signature, flags=flags, caching=False
    )
    return made.fndesc


def _field(builder: Any, data: Any, place: int) -> Any:
    return builder.gep(data, [_I32(0), _I32(place)])


def _uncounted(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    """Take an array's reference count away: whoever called holds it until all are done."""
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()

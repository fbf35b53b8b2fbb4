"""Copies of a few bytes within kernels, in one instruction each: what a copying loop costs, short copies cannot pay.

Compiled they read and write without looking at the arrays' ends, so that a caller must know that all bytes are there.
Pieces of one array that overlap are copied as if all were read first.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy as np

from saros_storage.types import ByteArray

Place: TypeAlias = int | np.uint64


def copy_2(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Two bytes."""
    _copy(out, int(to), data, int(at), 2)


def copy_8(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Eight bytes."""
    _copy(out, int(to), data, int(at), 8)


def copy_16(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Sixteen bytes."""
    _copy(out, int(to), data, int(at), 16)


def _copy(out: ByteArray, to: int, data: ByteArray, at: int, count: int) -> None:
    out[to : to + count] = data[at : at + count].copy()


_SIZES = {copy_2: 2, copy_8: 8, copy_16: 16}
_taught: list[Any] = []


def teach_copies() -> None:
    """Let kernels that are compiled from now on call the functions above. Idempotent; the caller holds a lock."""
    if not _taught:
        _taught.extend(_overloaded(function, size) for function, size in _SIZES.items())


def _overloaded(function: Any, size: int) -> Any:
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")
    chunk = ir.VectorType(ir.IntType(8), size).as_pointer()

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def pointer(array: int) -> Any:
            made = context.make_array(signature.args[array])(context, builder, values[array])
            return builder.bitcast(builder.gep(made.data, [values[array + 1]]), chunk)

        loaded = builder.load(pointer(2), align=1)
        builder.store(loaded, pointer(0), align=1)
        return context.get_dummy_value()

    def typed(_context: Any, out: Any, to: Any, data: Any, at: Any) -> Any:
        return numba.types.void(out, to, data, at), generate

    move = extending.intrinsic(typed)

    def call(out: Any, to: Any, data: Any, at: Any) -> Any:
        return move(out, to, data, at)

    return extending.overload(function, strict=False)(lambda *_types: call)

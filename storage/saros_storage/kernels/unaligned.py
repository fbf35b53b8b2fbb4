"""Single instructions for kernels: bit counts, and copies and reads of a few bytes, for which a loop would be too slow.

When compiled, they read and write without bounds checks, so the caller must ensure that all bytes exist. Overlapping
ranges of one array are copied as if all bytes were read before any is written.
"""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy as np

from saros_storage.base.types import ByteArray

Place: TypeAlias = int | np.uint64


def copy_2(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Copy two bytes."""
    _copy(out, int(to), data, int(at), 2)


def copy_8(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Copy eight bytes."""
    _copy(out, int(to), data, int(at), 8)


def copy_16(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Copy sixteen bytes."""
    _copy(out, int(to), data, int(at), 16)


def turn_4(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Copy four bytes in reverse order."""
    out[to : int(to) + 4] = data[at : int(at) + 4][::-1].copy()


def turn_8(out: ByteArray, to: Place, data: ByteArray, at: Place) -> None:
    """Copy eight bytes in reverse order."""
    out[to : int(to) + 8] = data[at : int(at) + 8][::-1].copy()


def number_8(data: ByteArray, at: Place) -> np.uint64:
    """Return eight bytes as a big-endian number."""
    return np.uint64(int.from_bytes(data[at : int(at) + 8].tobytes(), "big"))


def leading_zeros(number: np.uint64) -> int:
    """Return the number of leading zero bits of a 64-bit number."""
    return 64 - int(number).bit_length()


def _copy(out: ByteArray, to: int, data: ByteArray, at: int, count: int) -> None:
    out[to : to + count] = data[at : at + count].copy()


#: For each copying function, the order in which it writes the bytes of its input.
_ORDERS = {
    copy_2: range(2),
    copy_8: range(8),
    copy_16: range(16),
    turn_4: range(3, -1, -1),
    turn_8: range(7, -1, -1),
}
_taught: list[Any] = []


def register_intrinsics() -> None:
    """Make the functions above available to kernels compiled afterwards. Idempotent; the caller holds a lock."""
    if not _taught:
        _taught.extend(_copying(function, order) for function, order in _ORDERS.items())
        _taught.append(_reading())
        _taught.append(_counting())


def _copying(function: Any, order: range) -> Any:
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")
    chunk = ir.VectorType(ir.IntType(8), len(order)).as_pointer()
    places = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def pointer(array: int) -> Any:
            made = context.make_array(signature.args[array])(context, builder, values[array])
            return builder.bitcast(builder.gep(made.data, [values[array + 1]]), chunk)

        loaded = builder.load(pointer(2), align=1)
        builder.store(builder.shuffle_vector(loaded, loaded, places), pointer(0), align=1)
        return context.get_dummy_value()

    def typed(_context: Any, out: Any, to: Any, data: Any, at: Any) -> Any:
        return numba.types.void(out, to, data, at), generate

    move = extending.intrinsic(typed)

    def call(out: Any, to: Any, data: Any, at: Any) -> Any:
        return move(out, to, data, at)

    return extending.overload(function, strict=False)(lambda *_types: call)


def _reading() -> Any:
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")
    number = ir.IntType(64).as_pointer()

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        loaded = builder.load(builder.bitcast(builder.gep(array.data, [values[1]]), number), align=1)
        return builder.bswap(loaded)

    def typed(_context: Any, data: Any, at: Any) -> Any:
        return numba.types.uint64(data, at), generate

    read = extending.intrinsic(typed)

    def call(data: Any, at: Any) -> Any:
        return read(data, at)

    return extending.overload(number_8, strict=False)(lambda *_types: call)


def _counting() -> Any:
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.ctlz(values[0], ir.Constant(ir.IntType(1), 0))

    def typed(_context: Any, number: Any) -> Any:
        return numba.types.int64(number), generate

    count = extending.intrinsic(typed)

    def call(number: Any) -> Any:
        return count(number)

    return extending.overload(leading_zeros, strict=False)(lambda *_types: call)

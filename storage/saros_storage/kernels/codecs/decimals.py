"""Kernels that express floating-point numbers exactly as an integer divided by a power of ten: 20.25 is 2025 / 10^2.

Most sensor values have only a few decimals. If a double can hold both numbers exactly, their quotient is rounded only
once, and every reader gets the same bits by repeating the division. All readers of TsFile perform this division (see
`saros_storage.encoding.scaled`).
"""

from __future__ import annotations

import numpy as np

from saros_storage.base.types import Float64Array, Int64Array
from saros_storage.kernels.jit import kernel, part


def _scale_twin(values: Float64Array, digits_max: int, limit: float, single: bool, out: Int64Array) -> int:
    if (np.signbit(values) & (values == 0)).any() or not np.isfinite(values).all():
        return -1
    for digits in range(digits_max + 1):
        with np.errstate(over="ignore"):
            whole = np.rint(values * 10.0**digits)
        if not (np.abs(whole) <= limit).all():
            return -1
        again = whole / 10.0**digits
        if np.array_equal(again.astype(np.float32) if single else again, values):
            out[:] = whole
            return digits
    return -1


@part
def _scale(values: Float64Array, digits_max: int, limit: float, single: bool, out: Int64Array) -> int:
    power = 1.0
    digits = 0
    done = 0
    while done < len(values):
        value = values[done]
        whole = np.rint(value * power)
        if not abs(whole) <= limit or (value == 0.0 and np.signbit(value)):
            return -1
        again = np.float64(np.float32(whole / power)) if single else whole / power
        if again == value:
            out[done] = np.int64(whole)
            done += 1
        elif digits == digits_max:
            return -1
        else:
            power *= 10.0
            digits += 1
            done = 0
    return digits


@kernel("i64(f64r[], i64, f64, b1, i64[])", twin=_scale_twin)
def scale_exactly(values: Float64Array, digits_max: int, limit: float, single: bool, out: Int64Array) -> int:
    """Fill `out` with integers and return the least m for which every values[i] equals out[i] / 10^m.

    With `single`, the quotients are rounded to single precision. Returns -1 if there is no m up to `digits_max`, if an
    integer would exceed `limit`, or if a value is -0.0, infinite or NaN. `digits_max` is at most 22, since a double
    holds these powers of ten exactly.
    """
    return _scale(values, digits_max, limit, single, out)


def _scale_rows_twin(
    values: Float64Array, digits_max: int, limit: float, single: bool, out: Int64Array, digits: Int64Array
) -> None:
    lines, wholes = values.reshape(len(digits), -1), out.reshape(len(digits), -1)
    for row in range(len(digits)):
        digits[row] = _scale_twin(lines[row], digits_max, limit, single, wholes[row])


@kernel("void(f64r[], i64, f64, b1, i64[], i64[])", twin=_scale_rows_twin)
def scale_rows_exactly(
    values: Float64Array, digits_max: int, limit: float, single: bool, out: Int64Array, digits: Int64Array
) -> None:
    """Apply `scale_exactly` to each row of a matrix (`values` are its joined rows); `digits` gets each m, or -1."""
    count = len(values) // len(digits)
    for row in range(len(digits)):
        start, stop = row * count, (row + 1) * count
        digits[row] = _scale(values[start:stop], digits_max, limit, single, out[start:stop])

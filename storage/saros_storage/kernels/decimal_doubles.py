"""The double nearest to a decimal number, for kernels that parse numbers.

    mantissa * 10^exponent --128 bits of 5^exponent--> product of 64 and 128 bits --rounded to even--> bits of a double

The algorithm is described in Lemire, "Number Parsing at a Gigabyte per Second" (2021), sections 5 to 8. With a mantissa
of 64 bits and powers of 128 bits it never needs a fallback (Mushtak and Lemire, "Fast Number Parsing Without Fallback",
2023).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saros_storage.kernels.jit import part

#: With a 64-bit mantissa, a number with a smaller exponent is 0, and one with a larger exponent is infinite.
EXPONENT_MIN, EXPONENT_MAX = -342, 308
_POWER_BITS = 128
#: A number can be exactly halfway between two doubles only if its exponent is in this range.
_EVEN_MIN, _EVEN_MAX = -4, 23
#: From this exponent up to -1, the product of a 64-bit mantissa and the reciprocal of a power of five can be exact.
_RECIPROCAL_MIN = -27
#: The bits of a double's mantissa, the bias of its exponent, and the exponent of infinity.
_MANTISSA_BITS, _BIAS, _INFINITE = 52, 1_023, 2_047

_0, _1, _3, _32 = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(32)
_LOW_32 = np.uint64(0xFFFF_FFFF)
#: The lowest bits of the upper half of a product, which neither a double nor its rounding uses. If all of them are set,
#: a carry from the lower half may change the result.
_UNDECIDED = np.uint64((1 << 9) - 1)
_HIDDEN_BIT = np.uint64(1 << _MANTISSA_BITS)
_SIGN = np.uint64(1 << 63)


def power_of_five(exponent: int) -> int:
    """Return the leading 128 bits of 5^exponent, rounded down.

    If the exponent is negative and at least `_RECIPROCAL_MIN`, the reciprocal is rounded up instead, so that an exact
    half is recognised.
    """
    power: int = 5 ** abs(exponent)
    size = power.bit_length()
    if exponent >= 0:
        return power << (_POWER_BITS - size) if size <= _POWER_BITS else power >> (size - _POWER_BITS)
    return (1 << (size + _POWER_BITS - 1)) // power + (exponent >= _RECIPROCAL_MIN)


def _power_table() -> NDArray[np.uint64]:
    """Return the upper and the lower half of each power, one after the other."""
    powers = [power_of_five(exponent) for exponent in range(EXPONENT_MIN, EXPONENT_MAX + 1)]
    return np.array([half for power in powers for half in divmod(power, 1 << 64)], np.uint64)


_HALVES = _power_table()


@part
def double_bits(mantissa: np.uint64, exponent: int, negative: bool) -> np.uint64:
    """Return the bits of the double nearest to `mantissa * 10^exponent`; of two equally near doubles, the even one."""
    sign = _SIGN if negative else _0
    if mantissa == _0 or exponent < EXPONENT_MIN:
        return sign
    if exponent > EXPONENT_MAX:
        return sign | np.uint64(_INFINITE << _MANTISSA_BITS)
    zeros = _leading_zeros(mantissa)
    high, low = _product(mantissa << np.uint64(zeros), 2 * (exponent - EXPONENT_MIN))
    upper = int(high >> np.uint64(63))
    shift = np.uint64(upper + 9)
    digits = high >> shift
    # 217706 / 2^16 is log2(10), exact enough for all exponents.
    power = ((217_706 * exponent) >> 16) + 63 + upper - zeros + _BIAS
    if power <= 0:
        return sign | _subnormal(digits, power)
    is_half = (digits & _3) == _1 and low <= _1 and digits << shift == high
    if is_half and exponent >= _EVEN_MIN and exponent <= _EVEN_MAX:
        digits = digits - _1
    digits = (digits + (digits & _1)) >> _1
    if digits >> np.uint64(_MANTISSA_BITS + 1):
        digits, power = _HIDDEN_BIT, power + 1
    if power >= _INFINITE:
        return sign | np.uint64(_INFINITE << _MANTISSA_BITS)
    return sign | (np.uint64(power) << np.uint64(_MANTISSA_BITS)) | (digits & (_HIDDEN_BIT - _1))


@part
def _subnormal(digits: np.uint64, power: int) -> np.uint64:
    """Return the bits of a subnormal double, or of the smallest normal one if rounding carries."""
    if power <= -63:
        return _0
    digits = digits >> np.uint64(1 - power)
    # If rounding carries into the hidden bit, the exponent field becomes 1, as a normal number requires.
    return (digits + (digits & _1)) >> _1


@part
def _product(mantissa: np.uint64, place: int) -> tuple[np.uint64, np.uint64]:
    """Return the two upper words of the product of a mantissa and a power, precise enough to decide the rounding."""
    high, low = _multiply(mantissa, _HALVES[place])
    if high & _UNDECIDED == _UNDECIDED:
        carry, _ = _multiply(mantissa, _HALVES[place + 1])
        low = low + carry
        if low < carry:
            high = high + _1
    return high, low


@part
def _multiply(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the upper and lower 64 bits of a product."""
    a_high, a_low, b_high, b_low = a >> _32, a & _LOW_32, b >> _32, b & _LOW_32
    lowest, left, right = a_low * b_low, a_high * b_low, a_low * b_high
    middle = (lowest >> _32) + (left & _LOW_32) + (right & _LOW_32)
    high = a_high * b_high + (left >> _32) + (right >> _32) + (middle >> _32)
    return high, (middle << _32) | (lowest & _LOW_32)


@part
def _leading_zeros(value: np.uint64) -> int:
    """Return the number of leading zero bits of a non-zero number."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(64 - step) == _0:
            value = value << np.uint64(step)
            zeros += step
    return zeros

"""The kernel reads a decimal number as the nearest double, as Python's `float` does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from saros_storage.kernels import line_protocol as lines_
from saros_storage.kernels.decimal_doubles import EXPONENT_MAX, EXPONENT_MIN, power_of_five
from saros_storage.kernels.line_protocol import FIELD_WORDS, LINE_WORDS, STATE_WORDS, tokenise

#: The largest mantissa that the kernel reads.
MANTISSA_MAX = 10**19 - 1
_MANTISSAS = st.integers(0, MANTISSA_MAX)
_EXPONENTS = st.integers(EXPONENT_MIN - 5, EXPONENT_MAX + 5)


def read(texts: list[str]) -> list[float]:
    """Return the numbers that the kernel reads from texts, each as the value of a field."""
    raw = "".join(f"m f={text}\n" for text in texts).encode()
    count = len(texts)
    lines, fields = np.empty(count * LINE_WORDS, np.int64), np.empty(count * FIELD_WORDS, np.int64)
    tables, spans, names = np.empty(4 << count.bit_length(), np.int64), *np.empty((2, 2 * count), np.int64)
    floats, state = fields.view(np.float64), np.zeros(STATE_WORDS, np.int64)
    tokenise(np.frombuffer(raw, np.uint8), 0, np.uint64(1), lines, fields, floats, tables, spans, names, state)
    assert [0] * count == lines.reshape(-1, LINE_WORDS)[:, lines_.FAULT].tolist()
    kinds = fields.reshape(-1, FIELD_WORDS)[:, lines_.KIND]
    assert set(kinds.tolist()) <= {lines_.DOUBLE, lines_.LONG_DOUBLE}
    return np.where(kinds == lines_.DOUBLE, floats.reshape(-1, FIELD_WORDS)[:, lines_.NUMBER], np.inf).tolist()


def both(numbers: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Return the doubles that Python's `float` reads, and those that the kernel reads."""
    texts = [f"{mantissa}e{exponent}" for mantissa, exponent in numbers]
    return [float(text) for text in texts], read(texts)


def around_halves() -> list[tuple[int, int]]:
    """Return numbers that are hard to round: midpoints of two neighbouring doubles, and integers next to them."""
    found = []
    for size in range(54, 65):
        for odd in (1, 3, 5, 2**52 + 1, 2**53 - 1):
            middle = ((odd << 1 | 1) << (size - 54)) | (1 << (size - 1))
            found += [(number, 0) for number in (middle - 1, middle, middle + 1) if number <= MANTISSA_MAX]
    for power in range(1, 28):
        found += [(number * 5**power, -power) for number in (2**53 + 1, 2**53 + 3) if number * 5**power < MANTISSA_MAX]
    return found


@settings(max_examples=300)
@given(st.lists(st.tuples(_MANTISSAS, _EXPONENTS), min_size=1, max_size=100))
@example([(0, 0), (1, -324), (24703282292062327, -340), (24703282292062328, -340), (5, -324), (2, -324), (3, -324)])
@example([(22250738585072011, -324), (22250738585072014, -324), (22250738585072009, -324), (MANTISSA_MAX, -342)])
@example([(17976931348623157, 292), (17976931348623158, 292), (17976931348623159, 292), (MANTISSA_MAX, 308)])
@example(around_halves())
def test_a_decimal_number_is_the_double_of_python(numbers: list[tuple[int, int]]) -> None:
    expected, actual = both(numbers)
    assert expected == actual


@settings(max_examples=300)
@given(st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=1, max_size=100))
def test_texts_with_17_digits_are_the_double_that_they_were_written_from(values: list[float]) -> None:
    assert values == read([f"{value:.16e}" for value in values])
    assert values == read([f"{value!r}" if "e" in repr(value) else f"000{value!r}00" for value in values])


@pytest.mark.parametrize("exponent", [EXPONENT_MIN, -28, -27, -1, 0, 1, 55, 56, EXPONENT_MAX])
def test_powers_of_five_have_128_bits_and_the_right_value(exponent: int) -> None:
    power = power_of_five(exponent)
    assert 128 == power.bit_length()
    exact = 5 ** abs(exponent)
    if exponent >= 0:
        shift = 128 - exact.bit_length()
        scaled = exact << max(shift, 0)
        assert power << max(-shift, 0) <= scaled < (power + 1) << max(-shift, 0)
    else:
        one = 1 << (exact.bit_length() + 127)
        floor = power - (exponent >= -27)
        assert floor * exact < one < (floor + 1) * exact

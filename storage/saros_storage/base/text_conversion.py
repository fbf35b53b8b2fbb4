"""Convert values to text, for CAST, for SELECT LAST, and for series whose type was changed to text.

    1, 2.5f, 1e10      "1"  "2.5"  "1.0E10"       the shortest digits that read back as the same value, in Java's format
    true, 20240229     "true"  "2024-02-29"       BOOLEAN, DATE
    bytes              "0x6162"                   BLOB

Pure: any thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saros_storage.base.arrow import arrow_compute, numbers_to_arrow, text_from_arrow, text_to_arrow
from saros_storage.base.block import Column, TextArray
from saros_storage.base.types import FLOATING_TYPES, ByteArray, DataType, NumericArray

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def format_column(column: Column) -> TextArray:
    """Return the column's values as texts; slots of nulls become arbitrary texts."""
    if column.type is DataType.BLOB:
        return _hexadecimal(column.text)
    if column.type.is_text:
        return column.text
    if column.type is DataType.BOOLEAN:
        return TextArray.of(["false", "true"]).take(column.numbers.astype(np.int64))
    if column.type is DataType.DATE:
        return _dates(column.numbers)
    if column.type in FLOATING_TYPES:
        return _floats(column.numbers)
    import pyarrow as pa

    return text_from_arrow(numbers_to_arrow(column.numbers).cast(pa.string()))


def _floats(values: NumericArray) -> TextArray:
    """Format values in Java's format, with the shortest digits that read back as the same value (1.0, 1.0E10, NaN)."""
    import pyarrow as pa

    compute = arrow_compute()
    texts = numbers_to_arrow(values).cast(pa.string())
    texts = compute.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    with np.errstate(invalid="ignore"):
        plain = (values == 0) | ((np.abs(values) >= 1e-3) & (np.abs(values) < 1e7))
    if not plain.all():
        # Such values are rare, so they are formatted one by one.
        odd = [_java_float(value) for value in values[~plain]]
        texts = compute.replace_with_mask(texts, numbers_to_arrow(~plain), text_to_arrow(TextArray.of(odd)))
    return text_from_arrow(texts)


def _java_float(value: np.floating[Any]) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    digits, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    if digits.endswith(".0"):
        # Java always prints at least two digits: 4.9E-324, although 5E-324 reads back as the same value.
        digits, exponent = np.format_float_scientific(value, precision=1, unique=False, trim="k").split("e")
    return f"{digits}E{int(exponent)}"


def _dates(values: NumericArray) -> TextArray:
    """Format DATE numbers (yyyymmdd) as YYYY-MM-DD."""
    number = values.astype(np.int64)
    out = np.full((len(number), 10), ord("-"), np.uint8)
    for place in (9, 8, 6, 5, 3, 2, 1, 0):
        number, digit = np.divmod(number, 10)
        out[:, place] = digit + ord("0")
    return TextArray(np.arange(len(values) + 1, dtype=np.int32) * np.int32(10), out.reshape(-1))


def _hexadecimal(text: TextArray) -> TextArray:
    """Format bytes as 0x and two digits per byte."""
    data = text.data[text.offsets[0] : text.offsets[-1]]
    lengths = np.diff(text.offsets)
    offsets = np.zeros(len(text) + 1, np.int32)
    np.cumsum(2 * lengths + 2, out=offsets[1:])
    out: ByteArray = np.empty(int(offsets[-1]), np.uint8)
    out[offsets[:-1]] = ord("0")
    out[offsets[:-1] + 1] = ord("x")
    # The digits of byte j follow the prefixes of its own row and of all earlier rows.
    at = 2 * np.arange(len(data)) + 2 * (np.repeat(np.arange(len(text)), lengths) + 1)
    out[at] = _HEX[data >> 4]
    out[at + 1] = _HEX[data & 15]
    return TextArray(offsets, out)

"""Values as text, for CAST, SELECT LAST and series that were changed to text; and text in Arrow's layout.

    1, 2.5f, 1e10      "1"  "2.5"  "1.0E10"       the shortest digits that read back as the same value, as Java prints
    true, 20240229     "true"  "2024-02-29"       BOOLEAN, DATE
    bytes              "0x6162"                   BLOB

`TextArray` has Arrow's layout, so that neither direction copies data (only the mask is packed). Arrow is imported when
it is first needed. Pure: any thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saros_storage.base.block import Column, TextArray
from saros_storage.base.types import FLOATING_TYPES, BoolArray, ByteArray, DataType, NumericArray

#: An Arrow array or a module of Arrow: it has no types of its own that mypy could see.
Arrow = Any
#: Bytes from here on are parts of characters. To look for them takes a twentieth of Arrow's cast, which looks closer.
_NOT_ASCII = 128
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def arrow_compute() -> Arrow:
    """The module of Arrow's kernels."""
    import pyarrow.compute as pc

    return pc


def to_arrow(text: TextArray, valid: BoolArray | None = None, *, binary: bool = False) -> Arrow:
    """The Arrow array that shares the text's buffers; UTF-8, or opaque bytes if `binary`.

    What is not UTF-8 (a BLOB that was made TEXT, a foreign file's) shows U+FFFD where it is not, as Java reads it.
    """
    import pyarrow as pa

    mask = None
    if valid is not None:
        mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    offsets = pa.py_buffer(np.ascontiguousarray(text.offsets))
    data = pa.py_buffer(np.ascontiguousarray(text.data))
    ascii_only = not binary and text.data[text.offsets[0] : text.offsets[-1]].max(initial=0) < _NOT_ASCII
    array = pa.Array.from_buffers(pa.string() if ascii_only else pa.binary(), len(text), [mask, offsets, data])
    if binary or ascii_only:
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        # Rare by nature, so one by one.
        texts = [None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist()]
        return pa.array(texts, pa.string())


def numbers_to_arrow(values: NumericArray) -> Arrow:
    """The Arrow array that shares the numbers' buffer; `pa.array` would look into pandas, and so load it."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype)
    raw = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(raw)])


def from_arrow(array: Arrow) -> TextArray:
    """The text of an Arrow string or binary array (its nulls become empty or any text: the mask is the caller's)."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return TextArray(np.zeros(len(array) + 1, np.int32), np.empty(0, np.uint8))
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return TextArray(bounds, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))


def format_column(column: Column) -> TextArray:
    """The column's values as texts; slots of nulls become any text."""
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

    return from_arrow(numbers_to_arrow(column.numbers).cast(pa.string()))


def _floats(values: NumericArray) -> TextArray:
    """The shortest digits that read back as the same value, with a point, as Java prints them (1.0, 1.0E10, NaN)."""
    import pyarrow as pa

    compute = arrow_compute()
    texts = numbers_to_arrow(values).cast(pa.string())
    texts = compute.replace_substring_regex(texts, r"^(-?\d+)$", r"\1.0")
    with np.errstate(invalid="ignore"):
        plain = (values == 0) | ((np.abs(values) >= 1e-3) & (np.abs(values) < 1e7))
    if not plain.all():
        # Rare by nature, so one by one.
        odd = [_java_float(value) for value in values[~plain]]
        texts = compute.replace_with_mask(texts, numbers_to_arrow(~plain), to_arrow(TextArray.of(odd)))
    return from_arrow(texts)


def _java_float(value: np.floating[Any]) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    digits, exponent = np.format_float_scientific(value, unique=True, trim="0").split("e")
    return f"{digits}E{int(exponent)}"


def _dates(values: NumericArray) -> TextArray:
    """Dates, kept as yyyymmdd, in the form YYYY-MM-DD."""
    number = values.astype(np.int64)
    out = np.full((len(number), 10), ord("-"), np.uint8)
    for place in (9, 8, 6, 5, 3, 2, 1, 0):
        number, digit = np.divmod(number, 10)
        out[:, place] = digit + ord("0")
    return TextArray(np.arange(len(values) + 1, dtype=np.int32) * np.int32(10), out.reshape(-1))


def _hexadecimal(text: TextArray) -> TextArray:
    """Bytes as 0x and two digits each."""
    data = text.data[text.offsets[0] : text.offsets[-1]]
    lengths = np.diff(text.offsets)
    offsets = np.zeros(len(text) + 1, np.int32)
    np.cumsum(2 * lengths + 2, out=offsets[1:])
    out: ByteArray = np.empty(int(offsets[-1]), np.uint8)
    out[offsets[:-1]] = ord("0")
    out[offsets[:-1] + 1] = ord("x")
    # Byte j of all data stands behind its own row's prefix and those before.
    at = 2 * np.arange(len(data)) + 2 * (np.repeat(np.arange(len(text)), lengths) + 1)
    out[at] = _HEX[data >> 4]
    out[at + 1] = _HEX[data & 15]
    return TextArray(offsets, out)

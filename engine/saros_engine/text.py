"""Text columns through Arrow's kernels: comparison, order, matching, conversion.

`TextArray` has Arrow's layout, so that both directions cost no copy (only the mask is packed). Matching is linear in
the text whatever the pattern: Arrow's regular expressions are RE2's. Comparison is by bytes, which for UTF-8 is the
order of code points.

Arrow is imported when a query first needs it. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saros_storage.block import Column, TextArray
from saros_storage.errors import UserMistake
from saros_storage.types import BoolArray, ByteArray, DataType, Int64Array, NumericArray

#: An Arrow array or a module of Arrow: it has no types of its own that mypy could see.
Arrow = Any
#: Of a character in UTF-8, behind its first.
_FOLLOWING_BYTES_MAX = 3
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def arrow_compute() -> Arrow:
    """The module of Arrow's kernels."""
    import pyarrow.compute as pc

    return pc


def to_arrow(text: TextArray, valid: BoolArray | None = None, *, binary: bool = False) -> Arrow:
    """The Arrow array that shares the text's buffers; UTF-8, or opaque bytes if `binary`."""
    import pyarrow as pa

    mask = None
    if valid is not None:
        mask = pa.py_buffer(np.packbits(valid, bitorder="little"))
    offsets = pa.py_buffer(np.ascontiguousarray(text.offsets))
    data = pa.py_buffer(np.ascontiguousarray(text.data))
    kind = pa.binary() if binary else pa.string()
    return pa.Array.from_buffers(kind, len(text), [mask, offsets, data])


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


def numbers_of(array: Arrow) -> NumericArray:
    """The values of an Arrow array of numbers or booleans; slots of nulls hold anything."""
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), bitorder="little")
        return bits[array.offset : array.offset + len(array)].view(np.bool_)
    if len(array) == 0:
        return np.empty(0, array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]


def map_text(column: Column, function: str, **options: object) -> TextArray:
    """Arrow's string function `function` over the column."""
    import pyarrow as pa

    try:
        array = getattr(arrow_compute(), function)(to_arrow(column.text, column.valid), **options)
    except pa.ArrowInvalid as problem:
        raise UserMistake(f"a text is not legal UTF-8: {problem}") from problem
    return from_arrow(array)


def repeat_text(value: str | bytes, count: int) -> TextArray:
    """`count` times the same text."""
    raw = np.frombuffer(value.encode() if isinstance(value, str) else value, np.uint8)
    return TextArray(np.arange(count + 1, dtype=np.int32) * np.int32(len(raw)), np.tile(raw, count))


def compare_text(operator: str, left: TextArray | bytes, right: TextArray | bytes) -> BoolArray:
    """Row by row by bytes; `operator` is Arrow's name for it: equal, less, greater_equal, ..."""
    import pyarrow as pa

    def side(value: TextArray | bytes) -> Arrow:
        return pa.scalar(value, pa.binary()) if isinstance(value, bytes) else to_arrow(value, binary=True)

    return numbers_of(getattr(arrow_compute(), operator)(side(left), side(right)))


def text_distances(left: TextArray, right: TextArray) -> NumericArray:
    """Row by row how far the first characters that differ are apart, or, where none do, the lengths; int32.

    Negative where the left one sorts first. As Java's `compareTo`, but by code points. Values must be UTF-8.
    """
    compute = arrow_compute()
    lengths = [numbers_of(compute.utf8_length(to_arrow(text))).astype(np.int32) for text in (left, right)]
    distances = lengths[0] - lengths[1]
    rows, places = _first_differences(left, right)
    at = left.offsets[:-1][rows] + places
    for _ in range(_FOLLOWING_BYTES_MAX):  # back to the first byte of the character, which is at the same place in both
        back = (left.data[at] & 0xC0) == 0x80
        at, places = at - back, places - back
    distances[rows] = _code_points(left.data, at) - _code_points(right.data, right.offsets[:-1][rows] + places)
    return distances


def _first_differences(left: TextArray, right: TextArray) -> tuple[Int64Array, Int64Array]:
    """The rows of which a byte differs within the shorter one's length, and the first such byte in each."""
    shared = np.minimum(np.diff(left.offsets), np.diff(right.offsets)).astype(np.int64)
    ends = np.cumsum(shared)
    rows = np.repeat(np.arange(len(shared)), shared)
    places = np.arange(len(rows)) - np.repeat(ends - shared, shared)
    differ = np.flatnonzero(
        left.data[left.offsets[:-1][rows] + places] != right.data[right.offsets[:-1][rows] + places]
    )
    found, first = np.unique(rows[differ], return_index=True)
    return found, places[differ[first]]


def _code_points(data: ByteArray, at: Int64Array) -> NumericArray:
    """The characters of UTF-8 that begin at `at`; int32."""
    lead = data[at].astype(np.int32)
    following = (lead >= 0xC0).astype(np.int32) + (lead >= 0xE0) + (lead >= 0xF0)
    points = np.where(following == 0, lead, lead & (0x3F >> following))
    for number in range(1, _FOLLOWING_BYTES_MAX + 1):
        more = following >= number
        points[more] = points[more] << 6 | data[at[more] + number] & 0x3F
    return points


def text_ranks(text: TextArray) -> Int64Array:
    """Equal numbers for equal texts, larger ones for texts that sort later."""
    if len(text) == 0:
        return np.empty(0, np.int64)
    ranks = arrow_compute().rank(to_arrow(text, binary=True), "ascending", tiebreaker="dense")
    return numbers_of(ranks).astype(np.int64)


def is_in(text: TextArray, items: Sequence[bytes]) -> BoolArray:
    """Whether each text is one of `items`."""
    wanted = to_arrow(TextArray.of(items), binary=True)
    return numbers_of(arrow_compute().is_in(to_arrow(text, binary=True), value_set=wanted))


def check_pattern(pattern: str, *, regexp: bool) -> None:
    """Raises UserMistake if the pattern is not one that `match_text` takes."""
    match_text(TextArray.of([""]), pattern, regexp=regexp)


#: What stands for itself, written so that it does where the backslash escapes.
_ESCAPED = {character: "\\" + character for character in ("%", "_", "\\")}


def like_pattern(pattern: str, escape: str | None) -> str:
    """A pattern of LIKE ... ESCAPE as `match_text` takes it. Raises UserMistake 701 where nothing is escaped."""
    if escape is None:
        return pattern
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            literal = next(characters, "")
            if literal not in ("%", "_", escape):
                raise UserMistake(
                    f"behind the escape {escape!r} of {pattern!r} stands neither it, nor % or _", code=701
                )
            parts.append(_ESCAPED.get(literal, literal))
        else:
            parts.append(_ESCAPED["\\"] if character == "\\" else character)
    return "".join(parts)


def match_text(text: TextArray, pattern: str, *, regexp: bool) -> BoolArray:
    """LIKE (`%` any text, `_` any one character, a backslash before either means itself) or REGEXP (found anywhere)."""
    import pyarrow as pa

    kernel = arrow_compute().match_substring_regex if regexp else arrow_compute().match_like
    try:
        return numbers_of(kernel(to_arrow(text), pattern))
    except pa.ArrowInvalid as problem:
        raise UserMistake(
            f"{pattern!r} is not a regular expression that Saros takes (RE2 syntax: no look-around, no "
            f"back-references): {str(problem).removeprefix('Invalid regular expression: ')}"
        ) from problem


# ---------------------------------------------------------------------------------------------- values as text


def format_column(column: Column) -> TextArray:
    """The column's values as CAST(... AS TEXT) and SELECT LAST write them."""
    if column.type is DataType.BLOB:
        return _hexadecimal(column.text)
    if column.type.is_text:
        return column.text
    if column.type is DataType.BOOLEAN:
        return TextArray.of(["false", "true"]).take(column.numbers.astype(np.int64))
    if column.type is DataType.DATE:
        return _dates(column.numbers)
    if column.type in (DataType.FLOAT, DataType.DOUBLE):
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

"""Convert a file's columns to the types of series, and infer types from texts. Pure: any thread.

    text  -> BOOLEAN     true and false in upper or lower case, 1, 0
          -> INT32 INT64 digits with an optional sign; also 5.0, as pandas writes integers in columns with gaps
          -> FLOAT DOUBLE decimal or scientific; NaN, inf, Infinity; the minus sign may be U+2212
          -> DATE        2024-02-29
          -> BLOB        0x and two hexadecimal digits for each byte
          -> TEXT STRING the text unchanged
    typed -> the same type, or one of `_CASTS`

Texts that stand for a missing value (`NA_MARKS`) are null in all types except TEXT and STRING.

A value that does not fit its type becomes null. The caller finds it by comparing the result with the source.
`source_times.py` converts to TIMESTAMP.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saros_server.sources.source_options import WIDE_BLANKS, SourceError, SourceOptions
from saros_storage.base.arrow import arrow_type, data_type_of, text_to_arrow
from saros_storage.base.block import TextArray
from saros_storage.base.types import FLOATING_TYPES, STRING_TYPES, DataType, TimeUnit
from saros_wire.client_values import arrow_array

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([nN][aA][nN]|[iI]nf(inity)?|INF(INITY)?)$"
INTEGER = r"^[+-]?\d+$"
_WHOLE = r"^[+-]?\d+(\.0*)?$"
#: The parts of a text that are removed before it is parsed to an integer: a plus sign, which Arrow does not accept, and
#: a point with only zeros after it.
_NEEDLESS = r"^\+|\.0*$"
_BOOLEAN = r"^([tT]rue|[fF]alse|TRUE|FALSE)$"
_BYTES = r"^0[xX]([0-9a-fA-F]{2})*$"
#: Texts that loggers, spreadsheets or pandas write in place of a missing value.
NA_MARKS = text_to_arrow(
    TextArray.of(
        (
            *("NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NULL", "Null", "null", "None", "none", "nil"),
            *("-", "--", "---", "\N{EN DASH}", "\N{EM DASH}"),
        )
    )
)
_MINUS = "\N{MINUS SIGN}"
#: A number with a decimal comma and, optionally, separators between thousands.
_COMMA_NUMBER = rf"^[+-]?\d+([. '{WIDE_BLANKS}]\d{{3}})*,\d+([eE][+-]?\d+)?$"
_THOUSANDS = rf"^[+-]?\d{{1,3}}([.,' {WIDE_BLANKS}])\d{{3}}"
#: A DOUBLE can hold every integer up to this number, but only some of the larger ones. The larger ones match `_LONG`.
_EXACT_MAX = 2.0**53
_LONG = r"^[+-]?\d{16,}$"
#: Arrow's type for series of type TIMESTAMP when texts are parsed.
_INSTANT = pa.timestamp("ms", tz="UTC")
#: A null text. It is created this way because `pa.scalar` loads pandas.
NO_TEXT = pa.nulls(1, pa.string())[0]
#: If a value does not fit, columns up to this length are cast one value at a time.
_HALVED_ROWS_MIN = 64
#: For each type of values, the other types of series that can store them.
_CASTS: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64}) | FLOATING_TYPES,
    DataType.INT64: frozenset({DataType.INT32, DataType.TIMESTAMP}) | FLOATING_TYPES,
    DataType.FLOAT: frozenset({DataType.INT32, DataType.INT64, DataType.DOUBLE}),
    DataType.DOUBLE: frozenset({DataType.INT32, DataType.INT64, DataType.FLOAT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}


def is_text(type_: pa.DataType) -> bool:
    """Return whether values of the Arrow type are texts."""
    return data_type_of(type_) in STRING_TYPES


def plain(column: pa.Array, header: str) -> pa.Array:
    """Return the column without a dictionary or views. Its texts or bytes have Arrow's type `string` or `binary`."""
    values = arrow_array(column, header)
    if pa.types.is_large_string(values.type):
        return values.cast(pa.string())
    return values.cast(pa.binary()) if pa.types.is_large_binary(values.type) else values


def is_stored_as(stated: DataType, type_: DataType) -> bool:
    """Return whether a series of `type_` can store values of the stated type, which is not a type of texts."""
    return type_ is stated or type_ in _CASTS.get(stated, ())


def can_cast(source: pa.DataType, type_: DataType) -> bool:
    """Return whether Arrow can convert to the type, in case an option requires this type."""
    if type_ is DataType.TIMESTAMP:
        return bool(pa.types.is_integer(source) or pa.types.is_temporal(source))
    try:
        pa.nulls(0, source).cast(arrow_type(type_, _INSTANT))
    except pa.ArrowNotImplementedError:
        return False
    return True


def parse(column: pa.Array, type_: DataType, options: SourceOptions) -> pa.Array:
    """Parse texts to values of any type except TIMESTAMP. A text that does not fit becomes null."""
    if type_ in STRING_TYPES:
        return column
    text = pc.utf8_trim_whitespace(column)
    if type_ is DataType.BLOB:
        return _bytes_of(text)
    if type_ in (DataType.INT32, DataType.INT64):
        return whole_numbers(options.plain_numbers(text), arrow_type(type_, _INSTANT))
    if type_ in FLOATING_TYPES:
        return _floats(options.plain_numbers(text), arrow_type(type_, _INSTANT))
    return cast_fitting(without_blank(text), arrow_type(type_, _INSTANT))


def is_no_value(text: pa.Array, type_: DataType) -> pa.Array:
    """Return a mask of the texts that stand for a missing value if the series has this type."""
    if type_ in STRING_TYPES:
        return pc.is_null(text)
    trimmed = pc.utf8_trim_whitespace(text)
    return pc.or_kleene(pc.equal(trimmed, ""), pc.is_in(trimmed, NA_MARKS))


def without_blank(text: pa.Array) -> pa.Array:
    """Return the texts, with null in place of each empty text."""
    blank = pc.equal(text, "")
    return pc.if_else(blank, NO_TEXT, text) if pc.any(blank).as_py() else text


def matches(text: pa.Array, pattern: str) -> int:
    """Return the number of texts that match the pattern."""
    count: int | None = pc.sum(pc.match_substring_regex(text, pattern)).as_py()
    return count or 0


def matching(text: pa.Array, pattern: str) -> pa.Array:
    """Return the texts, with null in place of each text that does not match the pattern."""
    return pc.if_else(pc.match_substring_regex(text, pattern), text, NO_TEXT)


def whole_numbers(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Parse texts to integers. Other texts become null, also texts like 0x10, which Arrow would accept."""
    if not pc.any(pc.match_substring(text, "x", ignore_case=True)).as_py():
        try:
            return text.cast(type_)
        except pa.ArrowInvalid:
            return _sorted_out(text, type_)
    return _sorted_out(text, type_)


def _sorted_out(text: pa.Array, type_: pa.DataType) -> pa.Array:
    whole = matching(_with_plain_minus(text), _WHOLE)
    return cast_fitting(pc.replace_substring_regex(whole, _NEEDLESS, ""), type_)


def _with_plain_minus(text: pa.Array) -> pa.Array:
    return pc.replace_substring(text, _MINUS, "-")


def _floats(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """Parse texts to floats. Other texts become null, and so do numbers out of range, which Arrow makes infinite."""
    try:
        numbers = text.cast(type_)
    except pa.ArrowInvalid:
        numbers = cast_fitting(matching(_with_plain_minus(text), NUMBER), type_)
    infinite = pc.is_inf(numbers)
    if pc.any(infinite).as_py():
        overflows = pc.and_(infinite, pc.invert(pc.match_substring(text, "inf", ignore_case=True)))
        return pc.if_else(overflows, pa.scalar(None, type_), numbers)
    return numbers


def _bytes_of(text: pa.Array) -> pa.Array:
    """Parse texts of hexadecimal digits to bytes, decoding all values at once."""
    digits = pc.utf8_slice_codeunits(matching(text, _BYTES), 2)
    present = digits.drop_null()
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(present)], present), "")
    data = bytes.fromhex(joined[0].as_py())
    lengths = pc.fill_null(pc.divide(pc.binary_length(digits), 2), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
    valid = pa.py_buffer(np.packbits(digits.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(text), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])


def cast_fitting(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast an array. A value that does not fit becomes null; to find these values, the array is halved repeatedly."""
    try:
        return array.cast(type_)
    except pa.ArrowInvalid:
        if len(array) <= _HALVED_ROWS_MIN:
            return pa.array([_cast_one(value, type_) for value in array], type_)
        middle = len(array) // 2
        return pa.concat_arrays([cast_fitting(array[:middle], type_), cast_fitting(array[middle:], type_)])


def _cast_one(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    try:
        return value.cast(type_)
    except pa.ArrowInvalid:
        return pa.scalar(None, type_)


def cast(column: pa.Array, type_: DataType, unit: TimeUnit) -> pa.Array:
    """Convert the values of a typed file to any type except TIMESTAMP. A value that does not fit becomes null."""
    target = arrow_type(type_, pa.timestamp(unit.suffix, tz="UTC"))
    if type_ not in FLOATING_TYPES:
        return cast_fitting(column, target)
    values = column.cast(target, safe=False)
    if column.type != pa.float64() or type_ is not DataType.FLOAT:
        return values
    overflows = pc.and_(pc.is_inf(values), pc.invert(pc.is_inf(column)))
    return pc.if_else(overflows, pa.scalar(None, target), values) if pc.any(overflows).as_py() else values


def rounded(column: pa.Array, values: pa.Array, options: SourceOptions) -> list[str]:
    """Return the integers in a column that a DOUBLE cannot represent exactly, each as a text."""
    bounds = pc.min_max(values)
    if not bounds["min"].is_valid or max(abs(bounds["min"].as_py()), abs(bounds["max"].as_py())) < _EXACT_MAX:
        return []
    large = column.filter(pc.greater_equal(pc.abs(values), _EXACT_MAX))
    text = large.cast(pa.string()) if pa.types.is_integer(large.type) else _trimmed_numbers(large, options)
    whole = text.filter(pc.match_substring_regex(text, INTEGER)).to_pylist()
    return [number for number in whole if int(float(number)) != int(number)]


def _trimmed_numbers(column: pa.Array, options: SourceOptions) -> pa.Array:
    return options.plain_numbers(pc.utf8_trim_whitespace(column))


def inferred_type(header: str, column: pa.Array, options: SourceOptions, file: str) -> tuple[DataType | None, str]:
    """Infer the type of a column of texts. Return the type, and a note if the user may not expect this type.

    The type is None if the column has no values.

    Raises SourceError for numbers with a decimal comma.
    """
    text = without_blank(pc.utf8_trim_whitespace(column)).drop_null()
    if not len(text):
        return None, ""
    present = text.filter(pc.invert(pc.is_in(text, NA_MARKS)))
    numbers = _with_plain_minus(options.plain_numbers(present))
    count = matches(numbers, NUMBER)
    if count == len(present) > 0:
        type_, note = _number_type(header, numbers)
        return type_, note or _marks(header, text, type_)
    if matches(present, _BOOLEAN) == len(present) > 0:
        return DataType.BOOLEAN, _marks(header, text, DataType.BOOLEAN)
    remedy = f"pass --decimal , or, if these are texts, --type '{header}=TEXT'"
    refuse_decimal_commas(f"{file}: {header}", text, count, options, remedy)
    likely = matches(numbers, f"{NUMBER}|{_THOUSANDS}")
    return DataType.TEXT, _odd_word(header, present, numbers) if 2 * likely > len(present) else ""


def first_mark_and_word(column: pa.Array, options: SourceOptions) -> tuple[str | None, str | None]:
    """Return the first text that stands for a missing value, and the first other text that is no number."""
    text = without_blank(pc.utf8_trim_whitespace(column)).drop_null()
    is_mark = pc.is_in(text, NA_MARKS)
    numbers = _with_plain_minus(options.plain_numbers(text))
    is_word = pc.invert(pc.or_(is_mark, pc.match_substring_regex(numbers, NUMBER)))
    mark, word = (text.filter(which).slice(0, 1).to_pylist() for which in (is_mark, is_word))
    return mark[0] if mark else None, word[0] if word else None


def _marks(header: str, text: pa.Array, type_: DataType) -> str:
    marks = text.filter(pc.is_in(text, NA_MARKS))
    if not len(marks):
        return ""
    return (
        f"{header} is {type_.name}, and {marks[0].as_py()!r} is read as null; --type '{header}=TEXT' keeps it as text"
    )


def refuse_decimal_commas(where: str, text: pa.Array, numbers: int, options: SourceOptions, remedy: str) -> None:
    """Raise SourceError if most texts are numbers and at least one of them has a decimal comma.

    `numbers` is how many of the texts are numbers without a decimal comma.
    """
    commas = pc.match_substring_regex(text, _COMMA_NUMBER)
    if (
        options.decimal == "."
        and 2 * (numbers + pc.sum(commas, min_count=0).as_py()) > len(text)
        and pc.any(commas).as_py()
    ):
        odd = text.filter(commas)[0].as_py()
        raise SourceError(f"{where}: {odd!r} looks like a number with a decimal comma: {remedy}")


def _number_type(header: str, numbers: pa.Array) -> tuple[DataType, str]:
    """Return DOUBLE, as in SQL. If all numbers are integers and a DOUBLE might round one of them, return INT64."""
    if not matches(numbers, _LONG) or matches(numbers, INTEGER) != len(numbers):
        return DataType.DOUBLE, ""
    whole = whole_numbers(numbers, pa.int64())
    bounds = pc.min_max(whole)
    if whole.null_count or max(abs(bounds["min"].as_py()), abs(bounds["max"].as_py())) <= _EXACT_MAX:
        return DataType.DOUBLE, ""
    return DataType.INT64, (
        f"{header} is INT64, since a DOUBLE does not hold all whole numbers beyond 2**53; "
        f"--type '{header}=DOUBLE' rounds them"
    )


def _odd_word(header: str, text: pa.Array, numbers: pa.Array) -> str:
    odd = text.filter(pc.invert(pc.match_substring_regex(numbers, NUMBER)))[0].as_py()
    mark = re.match(_THOUSANDS, odd)
    remedy = (
        f'--thousands "{" " if mark[1] in WIDE_BLANKS else mark[1]}" reads it as one'
        if mark
        else f"--null '{odd}' reads it as null, --type '{header}=DOUBLE' sets such rows aside"
    )
    return f"{header} is TEXT, since {odd!r} is not a number; {remedy}"

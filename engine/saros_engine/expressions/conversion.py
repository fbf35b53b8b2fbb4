"""CAST: the conversion of a column to another type. Nulls stay null.

    from / to   INT32 INT64          FLOAT DOUBLE    BOOLEAN   TEXT STRING       TIMESTAMP   DATE         BLOB
    integers    range checked        nearest         != 0      digits            unchanged   yyyymmdd     big-endian
    floats      rounded half up,     range checked   != 0      shortest digits   rounded     yyyymmdd     big-endian
                range checked
    BOOLEAN     0 or 1               0.0 or 1.0      itself    true, false       0 or 1      -            0 or 1
    text        parsed               parsed          parsed    itself            parsed      YYYY-MM-DD   its bytes
    TIMESTAMP   range checked        nearest         != 0      the zone's clock  itself      the day      big-endian
    DATE        yyyymmdd             yyyymmdd        != 0      YYYY-MM-DD        midnight    itself       big-endian
    BLOB        -                    -               -         its bytes         -           -            itself

Bytes of a BLOB that are not valid UTF-8 become U+FFFD. Times are converted in `time_conversion`. A value that does not
fit the target type raises an error that names the value. Pure: any thread.
"""

from __future__ import annotations

import numpy as np

from saros_engine.expressions.time_conversion import (
    dates_of_times,
    texts_of_times,
    times_of_dates,
    times_of_texts,
)
from saros_storage.base.arrow import Arrow, arrow_compute, arrow_type, numbers_from_arrow, text_to_arrow
from saros_storage.base.block import Column, TextArray
from saros_storage.base.dates import dates_of, days_of
from saros_storage.base.errors import UserMistake
from saros_storage.base.text_conversion import format_column
from saros_storage.base.types import (
    FLOATING_TYPES,
    INTEGER_TYPES,
    NUMPY_DTYPE,
    STRING_TYPES,
    DataType,
    NumericArray,
    TimeUnit,
)

#: All doubles at or above this number are integers.
_WHOLE = 2.0**52
_ASCII_END = 0x80
_ANY_DAY, _FIRST_DATE, _LAST_DATE = 19_700_101, 10_000_101, 99_991_231
#: Types that can hold every INT32 and every INT64.
_WHOLE_64 = frozenset({DataType.INT64, DataType.TIMESTAMP})
_ANY_NUMBER = INTEGER_TYPES | FLOATING_TYPES
_TARGETS: dict[DataType, frozenset[DataType]] = {
    **dict.fromkeys(_ANY_NUMBER | {DataType.DATE}, frozenset(DataType)),
    DataType.BOOLEAN: frozenset(DataType) - {DataType.DATE},
    DataType.TEXT: frozenset(DataType),
    DataType.STRING: frozenset(DataType),
    DataType.BLOB: STRING_TYPES,
}


def check_conversion(source: DataType, target: DataType) -> None:
    """Raise UserMistake 701 if there is no conversion from `source` to `target`."""
    if source is not target and target not in _TARGETS[source]:
        raise UserMistake(f"CAST from {source.name} to {target.name} is not possible", code=701)


def always_converts(source: DataType, target: DataType) -> bool:
    """Return whether every value of `source` can be converted to `target`."""
    if source is target or target in STRING_TYPES or target is DataType.BLOB:
        return True
    if source in INTEGER_TYPES and target in _WHOLE_64:
        return True
    return source not in STRING_TYPES and target in (DataType.DOUBLE, DataType.BOOLEAN)


def convert(column: Column, target: DataType, zone: str = "UTC", unit: TimeUnit = TimeUnit.MILLISECOND) -> Column:
    """Return the column as `target`.

    Raises UserMistake with code 701 (no such conversion), 2008 (a value that does not fit) or 752 (a time outside
    DATE).
    """
    check_conversion(column.type, target)
    if column.type is target:
        return column
    if target in STRING_TYPES:
        return Column(target, _texts(column, zone, unit), column.valid)
    if column.type in STRING_TYPES:
        return _of_text(column, target, zone, unit)
    if target is DataType.BOOLEAN:
        return Column(target, column.numbers != 0, column.valid)
    if target is DataType.BLOB:
        return Column(target, _big_endian(column.numbers), column.valid)
    if DataType.DATE in (column.type, target):
        return _of_days(column, target, zone, unit)
    return Column(target, _number(column, target), column.valid)


def _texts(column: Column, zone: str, unit: TimeUnit) -> TextArray:
    if column.type is DataType.TIMESTAMP:
        return texts_of_times(column.numbers, zone, unit)
    return _valid_text(column) if column.type is DataType.BLOB else format_column(column)


def _valid_text(column: Column) -> TextArray:
    """Return the bytes of a BLOB column as text."""
    data = column.text.data
    if data.max(initial=0) < _ASCII_END:
        return column.text
    return TextArray.of(raw.decode(errors="replace") for raw in column.text.to_bytes())


def _of_text(column: Column, target: DataType, zone: str, unit: TimeUnit) -> Column:
    if target is DataType.BLOB:
        return Column(target, column.text, column.valid)
    if target is DataType.TIMESTAMP:
        texts = text_to_arrow(column.text, column.valid).to_pylist()
        return Column(target, times_of_texts(texts, zone, unit), column.valid)
    return Column(target, _parse(column, target), column.valid)


def _big_endian(numbers: NumericArray) -> TextArray:
    size = numbers.dtype.itemsize
    raw = np.frombuffer(numbers.astype(numbers.dtype.newbyteorder(">")).tobytes(), np.uint8)
    return TextArray(np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(size), raw)


def _of_days(column: Column, target: DataType, zone: str, unit: TimeUnit) -> Column:
    """Convert a column to or from DATE. In null rows, the numbers may be arbitrary."""
    numbers = column.numbers if column.valid is None else np.where(column.valid, column.numbers, _ANY_DAY)
    if column.type is DataType.TIMESTAMP:
        times = numbers if column.valid is None else np.where(column.valid, numbers, 0)
        return Column(target, dates_of_times(times, zone, unit), column.valid)
    if target is DataType.TIMESTAMP:
        return Column(target, times_of_dates(numbers, zone, unit), column.valid)
    if column.type is DataType.DATE:
        return Column(target, _number(column, target), column.valid)
    dates = _number(column, DataType.INT32)
    in_range = (dates >= _FIRST_DATE) & (dates <= _LAST_DATE)
    _refuse(column, ~in_range | (dates_of(days_of(np.where(in_range, dates, _ANY_DAY))) != dates), target)
    return Column(target, dates, column.valid)


def exact_integers(column: Column, target: DataType) -> Column:
    """Return a column of floats as integers with the same values.

    Raises UserMistake 507 for the first value that is not an integer of the type.
    """
    values, dtype = column.numbers, NUMPY_DTYPE[target]
    lowest = float(np.iinfo(dtype).min)
    fits = (values >= lowest) & (values < -lowest) & (values == np.floor(values))
    misfits = ~fits if column.valid is None else ~fits & column.valid
    if misfits.any():
        raise UserMistake(f"{values[np.argmax(misfits)].item()!r} does not fit {target.name}", code=507)
    with np.errstate(invalid="ignore"):
        return Column(target, values.astype(dtype), column.valid)


def _number(column: Column, target: DataType) -> NumericArray:
    """Convert numbers and booleans to another numeric type."""
    values, dtype = column.numbers, NUMPY_DTYPE[target]
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            result = values.astype(dtype)
        if values.dtype.kind == "f":
            _refuse(column, np.isinf(result) & ~np.isinf(values), target)
        return result
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            values = np.nan_to_num(np.floor(values.astype(np.float64) + 0.5), nan=0.0, posinf=np.inf, neginf=-np.inf)
    limits = np.iinfo(dtype)
    # As a float, the largest INT64 is rounded to 2 ** 63, which does not fit INT64.
    too_large = values >= 2.0**63 if values.dtype.kind == "f" and dtype.itemsize == 8 else values > limits.max
    outside = too_large | (values < limits.min) if values.dtype.kind != "b" else np.zeros(len(values), np.bool_)
    _refuse(column, outside, target)
    with np.errstate(invalid="ignore"):
        return values.astype(dtype)


def _refuse(column: Column, wrong: NumericArray, target: DataType) -> None:
    """Raise an error for the first non-null row marked in `wrong`."""
    if column.valid is not None:
        wrong = wrong & column.valid
    if wrong.any():
        value = column.slice(int(np.argmax(wrong)), int(np.argmax(wrong)) + 1).to_list()[0]
        raise UserMistake(f"CAST: {value!r} is out of the range of {target.name}", code=2008)


def _parse(column: Column, target: DataType) -> NumericArray:
    import pyarrow as pa

    kind = arrow_type(target, instant=pa.int64())
    texts = text_to_arrow(column.text, column.valid)
    if target is DataType.BOOLEAN:
        # Arrow would also accept 0 and 1, which are not BOOLEAN literals.
        texts = arrow_compute().utf8_lower(texts)
        texts = arrow_compute().replace_substring_regex(texts, "^[01]$", "x")
    try:
        parsed = texts.cast(kind)
    except pa.ArrowInvalid as problem:
        text = column.text.value(_offender(texts, kind)).decode(errors="replace")
        raise UserMistake(f"CAST: {text!r} is not a {target.name}", code=2008) from problem
    if target is DataType.DATE:
        return dates_of(numbers_from_arrow(parsed, NUMPY_DTYPE[target]))
    numbers = numbers_from_arrow(parsed)
    if numbers.dtype.kind == "f" and np.isinf(numbers).any():
        # Arrow turns numbers that are too large into infinities, but only a text that spells an infinity is valid.
        written = numbers_from_arrow(arrow_compute().match_substring(texts, "inf", ignore_case=True).fill_null(True))
        _refuse(column, np.isinf(numbers) & ~written, target)
    return numbers


def _offender(texts: Arrow, kind: Arrow) -> int:
    """Return the row of the first text that cannot be parsed, found by bisection."""
    import pyarrow as pa

    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            texts.slice(low, middle - low).cast(kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def rounded(column: Column, decimals: int) -> Column:
    """Round a column of floats to `decimals` places, with halves rounded up.

    Values with fewer decimals are unchanged.
    """
    values = column.numbers.astype(np.float64)
    with np.errstate(over="ignore"):
        scaled = values * 10.0**decimals
    result = np.where(np.abs(scaled) < _WHOLE, np.floor(scaled + 0.5) / 10.0**decimals, values)
    return Column(column.type, result.astype(column.numbers.dtype), column.valid)

"""Convert the literals of an INSERT to a column with the type of the series. Pure: any thread."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date

from saros_engine.base.errors import SemanticError
from saros_engine.expressions.times import parse_time
from saros_grammar.syntax.ast import Literal, LiteralKind
from saros_grammar.syntax.literals import shortened
from saros_storage.base.block import Column
from saros_storage.base.dates import date_number
from saros_storage.base.types import DataType, Scalar, TimeUnit

#: The types of series that are created for literals other than numbers.
_INFERRED = {
    LiteralKind.BOOLEAN: DataType.BOOLEAN,
    LiteralKind.STRING: DataType.TEXT,
    LiteralKind.BLOB: DataType.BLOB,
    LiteralKind.TIME: DataType.TIMESTAMP,
}
_HEXADECIMAL = re.compile(r"(?:0x|[xX](?='.*'))?(?P<quote>'?)(?P<digits>(?:[0-9a-fA-F]{2})*)(?P=quote)")
_BITS = {DataType.INT32: 31, DataType.INT64: 63, DataType.TIMESTAMP: 63}
_NUMBERS = (LiteralKind.INTEGER, LiteralKind.DOUBLE)


def inferred_type(literals: Sequence[Literal], integers: DataType, decimals: DataType) -> DataType | None:
    """Return the type of a series that is created for these values, or None if all are null.

    The first value decides; `integers` and `decimals` are the types for numbers.
    """
    kind = next((v.kind for v in literals if v.kind is not LiteralKind.NULL), None)
    if kind is None:
        return None
    return {**_INFERRED, LiteralKind.INTEGER: integers, LiteralKind.DOUBLE: decimals}[kind]


def column_of_literals(
    literals: Sequence[Literal], type_: DataType, zone: str, unit: TimeUnit
) -> tuple[Column, str | None]:
    """Convert the values to a column, with null for values that do not fit; also return a text about these misfits.

    An error message has this text after the name of the column. If all values fit, the text is None.
    """
    values: list[Scalar] = []
    unfit: list[int] = []
    for row, literal in enumerate(literals):
        value = None if literal.kind is LiteralKind.NULL else value_of(literal, type_, zone, unit)
        if value is None and literal.kind is not LiteralKind.NULL:
            unfit.append(row)
        values.append(value)
    return Column.of(type_, values), _misfits(literals, unfit, type_) if unfit else None


def value_of(literal: Literal, type_: DataType, zone: str, unit: TimeUnit) -> Scalar:
    """Return the literal as a value of a type, or None if it does not fit."""
    return _TAKERS[type_](literal, type_, zone, unit)


def _misfits(literals: Sequence[Literal], unfit: list[int], type_: DataType) -> str:
    """Return a text with the first value that does not fit, its row, and the number of other such values."""
    row, others = unfit[0], len(unfit) - 1
    where = f" in row {row + 1}" if len(literals) > 1 else ""
    form = " as YYYY-MM-DD" if type_ is DataType.DATE else ""
    more = f" and in {others} more row{'s' * (others > 1)}" if others else ""
    return f"{where} ({shortened(literals[row].text)} does not fit {type_.name}{form}){more}"


def _boolean(literal: Literal, *_: object) -> Scalar:
    if literal.kind is LiteralKind.BOOLEAN:
        return literal.value if isinstance(literal.value, bool) else None
    if literal.kind is LiteralKind.INTEGER and literal.value in (0, 1):
        return bool(literal.value)
    return None


def _integer(literal: Literal, type_: DataType, zone: str, unit: TimeUnit) -> Scalar:
    value = literal.value
    if literal.kind is LiteralKind.TIME and type_ is not DataType.INT32:
        value = parse_time(value, zone, unit) if isinstance(value, str) else value
    elif literal.kind is LiteralKind.STRING and type_ is DataType.TIMESTAMP and isinstance(value, str):
        value = _time(value, zone, unit)
        if value is None:
            return None
    elif literal.kind is not LiteralKind.INTEGER:
        return None
    assert isinstance(value, int)
    limit = 1 << _BITS[type_]
    return value if -limit <= value < limit else None


def _time(text: str, zone: str, unit: TimeUnit) -> int | None:
    try:
        return parse_time(text, zone, unit)
    except SemanticError:
        return None


def _float(literal: Literal, type_: DataType, *_: object) -> Scalar:
    if literal.kind not in _NUMBERS or not isinstance(literal.value, (int, float)):
        return None
    try:
        value = float(literal.value)
    except OverflowError:
        return None
    if math.isinf(value):
        return value if literal.text.lstrip("-").isalpha() else None  # such as 1e999, which is too large
    return None if type_ is DataType.FLOAT and abs(value) > _FLOAT_MAX else value


#: The largest double that rounds to a finite 32-bit float.
_FLOAT_MAX = 3.4028235677973362e38


def _text(literal: Literal, *_: object) -> Scalar:
    if literal.kind is LiteralKind.STRING and isinstance(literal.value, str):
        return literal.value
    return literal.text if literal.kind in (*_NUMBERS, LiteralKind.BOOLEAN) else None


def date_of(literal: Literal, *_: object) -> Scalar:
    """Return a day written as YYYY-MM-DD as a DATE number, or None for anything else."""
    if literal.kind not in (LiteralKind.STRING, LiteralKind.TIME) or not isinstance(literal.value, str):
        return None
    try:
        day = date.fromisoformat(literal.value)
    except ValueError:
        return None
    return date_number(day)


def _blob(literal: Literal, *_: object) -> Scalar:
    """Return the bytes of a BLOB literal X'0aff', or of a text that contains such a literal or only hex digits."""
    if not isinstance(literal.value, str) or literal.kind is not LiteralKind.STRING:
        return literal.value if isinstance(literal.value, bytes) else None
    digits = _HEXADECIMAL.fullmatch(literal.value)
    return None if digits is None else bytes.fromhex(digits["digits"])


_Taker = Callable[[Literal, DataType, str, TimeUnit], Scalar]
_TAKERS: dict[DataType, _Taker] = {
    DataType.BOOLEAN: _boolean,
    DataType.INT32: _integer,
    DataType.INT64: _integer,
    DataType.TIMESTAMP: _integer,
    DataType.FLOAT: _float,
    DataType.DOUBLE: _float,
    DataType.TEXT: _text,
    DataType.STRING: _text,
    DataType.DATE: date_of,
    DataType.BLOB: _blob,
}

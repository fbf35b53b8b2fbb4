"""Parameter binding: replaces each `?` of a statement by a value, in the statement's tree but never in its text.

    None -> NULL    bool -> BOOLEAN    int -> INTEGER    float, Decimal -> DOUBLE    str -> STRING    bytes -> BLOB
    datetime with a zone, numpy.datetime64 -> TIME in ticks
    datetime without a zone, date -> TIME as text, read in the session's zone like a date literal
    other NumPy scalar -> as the Python value that it holds

The text of a bound literal, which appears in column names, is the value as a user would type it in SQL.

Thread-safe, because a cached template is never changed, only replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from saros_grammar.syntax.ast import Literal, LiteralKind, Parameter, Statement
from saros_grammar.syntax.errors import BindError
from saros_grammar.templates import Rebuild, compile_template

#: Ticks of the default time unit, the millisecond.
MILLISECOND_TICKS = 1_000

_TEMPLATES_KEPT = 512
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_NANOSECONDS = 1_000_000_000


class ParameterBinder:
    """Binds values to statements of an instance whose time unit is 1 / `ticks_per_second` seconds."""

    def __init__(self, ticks_per_second: int = MILLISECOND_TICKS) -> None:
        self._ticks_per_second = ticks_per_second
        #: The templates, keyed by the id of the statement: (statement, number of `?`, function that fills the `?`). An
        #: entry keeps its statement alive, so that no other statement gets the same id.
        self._templates: dict[int, tuple[Statement, int, Rebuild | None]] = {}

    def bind(self, statement: Statement, values: Sequence[object]) -> Statement:
        """Return the statement with its `?` replaced by `values`, in text order. Raises BindError (2003)."""
        return self.filled(statement, self.literals(statement, values))

    def literals(self, statement: Statement, values: Sequence[object]) -> list[Literal]:
        """Return the values as literals, in the order of the statement's `?`. Raises BindError (2003)."""
        count, _ = self._template(statement)
        if len(values) != count:
            marks, given = _counted(count, "parameter"), _counted(len(values), "value")
            raise BindError(f"the statement has {marks} (?), and {given} {'was' if len(values) == 1 else 'were'} given")
        return [self.literal(value, index) for index, value in enumerate(values)]

    def filled(self, statement: Statement, literals: Sequence[Literal]) -> Statement:
        """Return the statement with its `?` replaced by `literals`, one for each `?`."""
        _, rebuild = self._template(statement)
        if rebuild is None:
            return statement
        bound: Statement = rebuild(literals)
        return bound

    def literal(self, value: object, index: int | None = None) -> Literal:
        """Return the literal of one value. Raises BindError (2003) with `index`, from 0, if it has no SQL type."""
        convert = _CONVERSIONS.get(type(value)) or _inherited(value)
        if convert is None:
            place = "" if index is None else f" (parameter {index + 1})"
            raise BindError(f"a value of type {type(value).__name__} cannot be bound{place}", index)
        try:
            return convert(value, self._ticks_per_second)
        except (OverflowError, ValueError) as error:
            raise BindError(f"the value {str(value)[:40]} cannot be bound: {error}", index) from None

    def _template(self, statement: Statement) -> tuple[int, Rebuild | None]:
        known = self._templates.get(id(statement))
        if known is not None and known[0] is statement:
            return known[1], known[2]
        indexes: set[int] = set()

        def hole(node: Any) -> int | None:
            if type(node) is not Parameter:
                return None
            indexes.add(node.index)
            return int(node.index)

        rebuild = compile_template(statement, hole)
        if len(self._templates) >= _TEMPLATES_KEPT:
            self._templates = {}
        self._templates[id(statement)] = (statement, len(indexes), rebuild)
        return len(indexes), rebuild


_Convert = Callable[[Any, int], Literal]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _inherited(value: object) -> _Convert | None:
    """Return the conversion for a NumPy scalar or for a base class of the value's type, or None if no type matches."""
    if hasattr(value, "dtype"):
        return _array_scalar if getattr(value, "shape", None) == () else None
    for kind, convert in _CONVERSIONS.items():
        if isinstance(value, kind):
            return convert
    return None


def _array_scalar(value: Any, ticks_per_second: int) -> Literal:
    if value.dtype.kind == "M":
        nanoseconds = int(value.astype("datetime64[ns]").astype("int64"))
        if nanoseconds == _INTEGER_MIN:
            return _null(None, ticks_per_second)
        return _ticks(nanoseconds, ticks_per_second)
    plain = value.item()
    convert = _CONVERSIONS.get(type(plain))
    if convert is None:
        raise ValueError(f"NumPy's {value.dtype} has no SQL type")
    return convert(plain, ticks_per_second)


def _null(_: Any, __: int) -> Literal:
    return Literal(LiteralKind.NULL, None, "null")


def _boolean(value: bool, _: int) -> Literal:
    return Literal(LiteralKind.BOOLEAN, bool(value), "true" if value else "false")


def _integer(value: int, _: int) -> Literal:
    if not _INTEGER_MIN <= value <= _INTEGER_MAX:
        raise ValueError("it does not fit 64 bits")
    return Literal(LiteralKind.INTEGER, int(value), str(int(value)))


def _double(value: float, _: int) -> Literal:
    number = float(value)
    text = (
        repr(number) if math.isfinite(number) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(number)]
    )
    return Literal(LiteralKind.DOUBLE, number, text)


def _decimal(value: Decimal, _: int) -> Literal:
    if not value.is_finite():
        return _double(float(value), 0)
    number = float(value)
    if math.isinf(number):
        raise OverflowError("it does not fit a double")
    return replace(_double(number, 0), text=str(value))


def _string(value: str, _: int) -> Literal:
    return Literal(LiteralKind.STRING, str(value), "'" + value.replace("'", "''") + "'")


def _blob(value: bytes | bytearray | memoryview, _: int) -> Literal:
    content = bytes(value)
    return Literal(LiteralKind.BLOB, content, f"X'{content.hex()}'")


def _datetime(value: datetime, ticks_per_second: int) -> Literal:
    if value.tzinfo is None:
        text = value.isoformat(timespec="microseconds" if value.microsecond else "seconds")
        return Literal(LiteralKind.TIME, text, text)
    microseconds = (value - _EPOCH) // timedelta(microseconds=1)
    # A pandas Timestamp is a datetime that also has nanoseconds.
    return _ticks(microseconds * 1_000 + int(getattr(value, "nanosecond", 0)), ticks_per_second)


def _date(value: date, _: int) -> Literal:
    return Literal(LiteralKind.TIME, value.isoformat(), value.isoformat())


def _ticks(nanoseconds: int, ticks_per_second: int) -> Literal:
    ticks = nanoseconds * ticks_per_second // _NANOSECONDS
    if not _INTEGER_MIN <= ticks <= _INTEGER_MAX:
        raise OverflowError("it does not fit 64 bits")
    return Literal(LiteralKind.TIME, ticks, str(ticks))


#: Conversions by type. Subclasses come before their bases (bool is an int, a datetime is a date).
_CONVERSIONS: dict[type, _Convert] = {
    type(None): _null,
    bool: _boolean,
    int: _integer,
    float: _double,
    Decimal: _decimal,
    str: _string,
    bytes: _blob,
    bytearray: _blob,
    memoryview: _blob,
    datetime: _datetime,
    date: _date,
}

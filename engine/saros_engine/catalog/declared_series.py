"""Make series from their declarations in statements. Properties that a statement does not declare get defaults.

DATATYPE=FLOAT, ENCODING=RLE, MAX_POINT_NUMBER=3       values are rounded to three decimals when they are written
DATATYPE=INT32, LOSS=SDT, COMPDEV=2, COMPMINTIME=..    a flush drops points near a line through other points
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from saros_engine.base.errors import NotSupportedError
from saros_grammar.syntax.ast import SeriesColumn
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import (
    DEFAULT_COMPRESSOR,
    DEFAULT_ENCODING,
    FLOATING_TYPES,
    TIME_MAX,
    Compressor,
    DataType,
    Encoding,
)
from saros_storage.schema import Deadband, SeriesSchema

_DECIMALS, _LOSS, _DEVIATION, _SHORTEST, _LONGEST = "max_point_number", "loss", "compdev", "compmintime", "compmaxtime"
_PROPERTIES = frozenset({_DECIMALS, _LOSS, _DEVIATION, _SHORTEST, _LONGEST})
#: Encodings that round floats to MAX_POINT_NUMBER decimals, because IoTDB stores them as scaled integers.
_ROUNDING = frozenset({Encoding.RLE, Encoding.TS_2DIFF})
#: The number of decimals if MAX_POINT_NUMBER is invalid, as in IoTDB.
_DEFAULT_DECIMALS = 2
#: A double has at most this many significant digits.
_DECIMALS_MAX = 17


def series_of(column: SeriesColumn) -> SeriesSchema:
    """Return the series that a column of CREATE TIMESERIES or of a template declares.

    Raises UserMistake for invalid names and values, and NotSupportedError for unknown properties.
    """
    properties = {name.lower(): value for name, value in column.properties}
    unknown = next((name for name, _ in column.properties if name.lower() not in _PROPERTIES), None)
    if unknown is not None:
        raise NotSupportedError(f"property {unknown} of CREATE TIMESERIES")
    type_ = declared_type(column.type_name)
    encoding, compressor = declared_encoding(column.encoding), declared_compressor(column.compressor)
    encoding = DEFAULT_ENCODING[type_] if encoding is None else encoding
    compressor = DEFAULT_COMPRESSOR if compressor is None else compressor
    rounds = type_ in FLOATING_TYPES and column.encoding is not None and encoding in _ROUNDING
    return SeriesSchema(
        column.measurement,
        type_,
        encoding,
        compressor,
        column.alias,
        dict(column.tags),
        dict(column.attributes),
        _decimals(properties) if rounds else None,
        _deadband(properties),
    )


def declared_type(name: str) -> DataType:
    """Return the type with this name. Raises UserMistake 701 if there is no such type."""
    return DataType[_checked_name(name, DataType.__members__, "data type")]


def declared_encoding(name: str | None) -> Encoding | None:
    """Return the encoding with this name, or None without a name. Raises UserMistake 701 if no encoding has it."""
    return None if name is None else Encoding[_checked_name(name, Encoding.__members__, "encoding")]


def declared_compressor(name: str | None) -> Compressor | None:
    """Return the compressor with this name, or None without a name. Raises UserMistake 701 if no compressor has it."""
    return None if name is None else Compressor[_checked_name(name, Compressor.__members__, "compressor")]


def _decimals(properties: Mapping[str, str]) -> int | None:
    text = properties.get(_DECIMALS)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        return _DEFAULT_DECIMALS
    return min(number, _DECIMALS_MAX) if number >= 0 else _DEFAULT_DECIMALS


def _deadband(properties: Mapping[str, str]) -> Deadband | None:
    loss = properties.get(_LOSS)
    if loss is None:
        return None
    if loss.upper() != "SDT":
        raise UserMistake(f"LOSS={loss} is unknown: use SDT", code=701)
    if _DEVIATION not in properties:
        raise UserMistake("LOSS=SDT needs COMPDEV, the largest deviation of points to drop", code=701)
    shortest, longest = _time(properties, _SHORTEST, 0), _time(properties, _LONGEST, TIME_MAX)
    if longest <= shortest:
        raise UserMistake(f"COMPMAXTIME {longest} must be greater than COMPMINTIME {shortest}", code=701)
    return Deadband(_deviation(properties[_DEVIATION]), shortest, longest)


def _deviation(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise UserMistake(f"COMPDEV {text} is invalid: use a number of at least 0", code=701)
    return found


def _time(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    try:
        found = int(text)
    except ValueError:
        found = -1
    if not 0 <= found <= TIME_MAX:
        raise UserMistake(
            f"{name.upper()} {text} is invalid: use an integer of at least 0, in the database's unit", code=701
        )
    return found


def _checked_name(name: str, names: Mapping[str, object], what: str) -> str:
    if name not in names:
        raise UserMistake(f"{what} {name} is unknown: use one of {', '.join(names)}", code=701)
    return name

"""The elements of a schema: series, devices, and the rules about encodings. Pure values: any thread."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from saros_storage.base.errors import UserMistake
from saros_storage.base.types import (
    DEFAULT_ENCODING,
    FLOATING_TYPES,
    NUMERIC_TYPES,
    TIME_MAX,
    Compressor,
    DataType,
    Encoding,
)
from saros_storage.encoding import encodings_for


class Deadband(msgspec.Struct, frozen=True):
    """Limits that decide which points of a series are stored (see `kernels.deadband`).

    `shortest` and `longest` are in the database's time unit.
    """

    deviation: float
    #: Points at most this long after the last stored point are dropped.
    shortest: int = 0
    #: Points at least this long after the last stored point are stored.
    longest: int = TIME_MAX


class SeriesSchema(msgspec.Struct, frozen=True):
    """One series of a device. `encoding` is the declared encoding; files use the result of `stored_encoding`."""

    measurement: str
    type: DataType
    encoding: Encoding
    compressor: Compressor
    alias: str | None = None
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: Number of decimals to which values are rounded when they are written, or None if values are not rounded.
    decimals: int | None = None
    deadband: Deadband | None = None
    #: The types that the series had before, without repetitions. Points that were written before a change of type are
    #: still stored with the old type.
    earlier: tuple[DataType, ...] = ()


class DeviceSchema(msgspec.Struct, frozen=True):
    """A device and its series by measurement.

    Immutable: a change creates a new value, and readers may keep the old value.
    """

    path: str
    database: str
    aligned: bool
    series: Mapping[str, SeriesSchema]

    def find(self, name: str) -> SeriesSchema | None:
        """Return the series with this measurement name or alias, or None."""
        found = self.series.get(name)
        if found is None:
            found = next((s for s in self.series.values() if s.alias == name), None)
        return found


_INTEGERS = {
    Encoding.PLAIN,
    Encoding.RLE,
    Encoding.TS_2DIFF,
    Encoding.GORILLA,
    Encoding.ZIGZAG,
    Encoding.CHIMP,
    Encoding.SPRINTZ,
    Encoding.RLBE,
}
_FLOATS = _INTEGERS - {Encoding.ZIGZAG}
_TEXTS = {Encoding.PLAIN, Encoding.DICTIONARY}
#: Encodings that a series may declare, as in IoTDB.
LEGAL_ENCODINGS: dict[DataType, frozenset[Encoding]] = {
    DataType.BOOLEAN: frozenset({Encoding.PLAIN, Encoding.RLE}),
    DataType.INT32: frozenset(_INTEGERS),
    DataType.INT64: frozenset(_INTEGERS),
    DataType.DATE: frozenset(_INTEGERS),
    DataType.TIMESTAMP: frozenset(_INTEGERS),
    DataType.FLOAT: frozenset(_FLOATS),
    DataType.DOUBLE: frozenset(_FLOATS),
    DataType.TEXT: frozenset(_TEXTS),
    DataType.STRING: frozenset(_TEXTS),
    DataType.BLOB: frozenset({Encoding.PLAIN}),
}


def stored_encoding(type_: DataType, declared: Encoding) -> Encoding:
    """Return the encoding that files use: the declared one if Saros writes it for this type, otherwise the default.

    Saros writes neither encodings that lose digits (RLE and TS_2DIFF of floats) nor encodings that Apache's two readers
    decode differently.
    """
    return declared if declared in encodings_for(type_) else DEFAULT_ENCODING[type_]


def retyped(series: SeriesSchema, type_: DataType, encoding: Encoding) -> SeriesSchema:
    """Return the series with the type `type_`, without the properties that `type_` does not support."""
    earlier = tuple(t for t in dict.fromkeys((*series.earlier, series.type)) if t is not type_)
    return replace(
        series,
        type=type_,
        encoding=encoding,
        decimals=series.decimals if type_ in FLOATING_TYPES else None,
        deadband=series.deadband if type_ in NUMERIC_TYPES else None,
        earlier=earlier,
    )


def encoding_as(series: SeriesSchema, type_: DataType) -> Encoding:
    """Return the encoding of a series after a change of its type to `type_`.

    This is the present encoding if `type_` allows it and it is not the default of the present type. Otherwise it is the
    default of `type_`.
    """
    is_default = series.encoding is DEFAULT_ENCODING[series.type]
    return series.encoding if not is_default and series.encoding in LEGAL_ENCODINGS[type_] else DEFAULT_ENCODING[type_]


def check_deadband(name: str, series: SeriesSchema, *, aligned: bool) -> None:
    """Raise UserMistake 701 if the series has a deadband but cannot have one."""
    if series.deadband is None:
        return
    if series.type not in NUMERIC_TYPES:
        raise UserMistake(f"{name} is {series.type.name}: only numbers have a deadband", code=701)
    if aligned:
        raise UserMistake(f"{name} is a series of an aligned device, which does not support deadbands", code=701)

"""The elements of a schema: series, devices, and the rules about encodings. Pure values: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True, slots=True)
class Deadband:
    """Which points of a series are worth a place in a file: see `kernels.deadband`. Times in the database's unit."""

    deviation: float
    #: Points at most so far behind a stored one are dropped.
    shortest: int = 0
    #: One that is so far behind it, or further, is stored.
    longest: int = TIME_MAX


@dataclass(frozen=True, slots=True)
class SeriesSchema:
    """One series of a device. `encoding` is what was declared; `stored_encoding` says what is written."""

    measurement: str
    type: DataType
    encoding: Encoding
    compressor: Compressor
    alias: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    #: Decimals to which values are rounded when they are written; None: they stay as they are.
    decimals: int | None = None
    deadband: Deadband | None = None
    #: Types that it had before, each once: points of then are stored so.
    earlier: tuple[DataType, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceSchema:
    """A device and its series by measurement; a change makes a new value, so a reader may keep one."""

    path: str
    database: str
    aligned: bool
    series: Mapping[str, SeriesSchema]

    def find(self, name: str) -> SeriesSchema | None:
        """The series of this measurement name or alias."""
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
#: What IoTDB lets one declare.
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
    """What is written for a declared encoding: that one, or the type's default where Saros does not write it.

    So it is for encodings that lose digits (RLE and TS_2DIFF of floats) or on which Apache's two readers differ.
    """
    return declared if declared in encodings_for(type_) else DEFAULT_ENCODING[type_]


def retyped(series: SeriesSchema, type_: DataType, encoding: Encoding) -> SeriesSchema:
    """The series with another type. What belongs to numbers, or to floats, goes where it is none any more."""
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
    """How a series that is given another type is declared: as it was, unless that was, or does not fit, the default."""
    is_default = series.encoding is DEFAULT_ENCODING[series.type]
    return series.encoding if not is_default and series.encoding in LEGAL_ENCODINGS[type_] else DEFAULT_ENCODING[type_]


def check_deadband(name: str, series: SeriesSchema, *, aligned: bool) -> None:
    """Raise UserMistake 701 if the series cannot have the deadband that it has."""
    if series.deadband is None:
        return
    if series.type not in NUMERIC_TYPES:
        raise UserMistake(f"{name} is {series.type.name}: only numbers have a deadband", code=701)
    if aligned:
        raise UserMistake(f"{name} is a series of an aligned device, whose rows stay whole: no deadband", code=701)

"""What a schema is made of: series, devices, and the rules about encodings. Pure values: any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from saros_storage.encoding import encodings_for
from saros_storage.types import DEFAULT_ENCODING, Compressor, DataType, Encoding


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

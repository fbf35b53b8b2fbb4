"""Basic types: data types, encodings, compressors, time units.

The values of the enums are the ids of Apache TsFile v4, so they can be written to disk unchanged. In memory, a column
has the NumPy dtype of `NUMPY_DTYPE`, or is a `TextArray` if its type is text-like (see `block.py`). DATE is an int32
`yyyymmdd`, TIMESTAMP an int64 in the instance's time unit.

Pure: no state, any thread.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
Float64Array: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
#: An array whose dtype depends on a `DataType` known only at run time; hence `Any`.
NumericArray: TypeAlias = npt.NDArray[Any]
#: A single value as a Python object: a literal, a bound parameter or a result cell.
Scalar: TypeAlias = bool | int | float | str | bytes | None

#: Times are int64; the last value is reserved, so that half-open ranges can include every legal time.
TIME_MIN = -(2**63)
TIME_MAX = 2**63 - 1


class DataType(IntEnum):
    """Type of a series' values; the value of each member is TsFile's type id."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    FLOAT = 3
    DOUBLE = 4
    TEXT = 5
    TIMESTAMP = 8
    DATE = 9
    BLOB = 10
    STRING = 11

    @property
    def is_text(self) -> bool:
        """True for types stored as `TextArray` (TEXT, STRING, BLOB)."""
        return self in TEXT_TYPES

    @property
    def is_numeric(self) -> bool:
        """True for INT32, INT64, FLOAT and DOUBLE: the types that numeric functions accept."""
        return self in NUMERIC_TYPES


#: Types stored as `TextArray`, and the subset whose values are characters.
TEXT_TYPES = frozenset({DataType.TEXT, DataType.BLOB, DataType.STRING})
STRING_TYPES = frozenset({DataType.TEXT, DataType.STRING})
#: Floating-point types; integer types, including times; types that numeric functions accept.
FLOATING_TYPES = frozenset({DataType.FLOAT, DataType.DOUBLE})
INTEGER_TYPES = frozenset({DataType.INT32, DataType.INT64, DataType.TIMESTAMP})
NUMERIC_TYPES = frozenset({DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE})

NUMPY_DTYPE: dict[DataType, np.dtype[Any]] = {
    DataType.BOOLEAN: np.dtype(np.bool_),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
    DataType.FLOAT: np.dtype(np.float32),
    DataType.DOUBLE: np.dtype(np.float64),
    DataType.TIMESTAMP: np.dtype(np.int64),
    DataType.DATE: np.dtype(np.int32),
}


class Encoding(IntEnum):
    """Encoding of a chunk's values; the value of each member is TsFile's encoding id.

    The docstring of `saros_storage.encoding` lists the encodings that Saros writes.
    """

    PLAIN = 0
    DICTIONARY = 1
    RLE = 2
    DIFF = 3
    TS_2DIFF = 4
    BITMAP = 5
    GORILLA_V1 = 6
    REGULAR = 7
    GORILLA = 8
    ZIGZAG = 9
    FREQ = 10
    CHIMP = 11
    SPRINTZ = 12
    RLBE = 13
    CAMEL = 14


class Compressor(IntEnum):
    """Compression of a page; the value of each member is TsFile's compressor id."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    LZ4 = 7
    ZSTD = 8
    LZMA2 = 9


class TimeUnit(Enum):
    """Precision of every timestamp of an instance; the value of each member is its number of ticks per second."""

    MILLISECOND = 1_000
    MICROSECOND = 1_000_000
    NANOSECOND = 1_000_000_000

    @property
    def suffix(self) -> str:
        """The unit as SQL and configuration spell it: `ms`, `us` or `ns`."""
        return {1_000: "ms", 1_000_000: "us", 1_000_000_000: "ns"}[self.value]


#: Time units by suffix.
TIME_UNITS = {unit.suffix: unit for unit in TimeUnit}


#: For each data type, the encoding of a series that declares no encoding.
DEFAULT_ENCODING: dict[DataType, Encoding] = {
    DataType.BOOLEAN: Encoding.PLAIN,
    DataType.INT32: Encoding.TS_2DIFF,
    DataType.INT64: Encoding.TS_2DIFF,
    DataType.FLOAT: Encoding.GORILLA,
    DataType.DOUBLE: Encoding.GORILLA,
    DataType.TEXT: Encoding.PLAIN,
    DataType.TIMESTAMP: Encoding.TS_2DIFF,
    DataType.DATE: Encoding.TS_2DIFF,
    DataType.BLOB: Encoding.PLAIN,
    DataType.STRING: Encoding.PLAIN,
}
DEFAULT_COMPRESSOR = Compressor.LZ4

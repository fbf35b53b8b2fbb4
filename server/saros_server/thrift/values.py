"""Decode values of IoTDB's session protocol: big-endian numbers, length-prefixed texts, dates as yyyymmdd.

    numbers(type, bytes)          one byteswap for all values of a type
    texts(data, starts, lengths)  one copy without the lengths between the texts

Pure: any thread.
"""

from __future__ import annotations

import numpy as np

from saros_server.api.errors import BadMessage
from saros_storage.base.block import TextArray
from saros_storage.base.types import (
    NUMPY_DTYPE,
    TEXT_TYPES,
    BoolArray,
    ByteArray,
    DataType,
    Int32Array,
    Int64Array,
    NumericArray,
)
from saros_storage.kernels.prefixed import PREFIXED, UNKNOWN, gather

#: The type byte of a null value in a record.
NULL = 0xFE
#: For each type, the size of a value in bytes.
SIZES = {type_: dtype.itemsize for type_, dtype in NUMPY_DTYPE.items()}


def sizes_by_byte() -> Int64Array:
    """Return the sizes of a record's values by type byte, in the form that the kernel `typed_values` expects."""
    sizes = np.full(256, UNKNOWN, np.int64)
    sizes[NULL] = 0
    for type_, size in SIZES.items():
        sizes[type_] = size
    sizes[list(TEXT_TYPES)] = PREFIXED
    return sizes


def type_of(code: int) -> DataType:
    """Return the data type of a number in a request. Raises BadMessage."""
    try:
        return DataType(code)
    except ValueError:
        raise BadMessage(f"{code} is not the number of a data type") from None


def numbers(type_: DataType, raw: ByteArray) -> NumericArray:
    """Decode big-endian numbers: from bytes of shape (..., size) to numbers of shape (...)."""
    dtype = NUMPY_DTYPE[type_]
    found: NumericArray = raw.view(dtype.newbyteorder(">")).reshape(raw.shape[:-1])
    return raw.reshape(found.shape) != 0 if type_ is DataType.BOOLEAN else found.astype(dtype)


def texts(data: ByteArray, starts: Int64Array, offsets: Int32Array) -> TextArray:
    """Return the texts that begin at `starts` in `data`.

    `offsets` has the position of each text in the result: it starts with 0 and ends with the size of all texts.
    """
    out = np.empty(offsets[-1], np.uint8)
    gather(data, starts, offsets, out)
    return TextArray(offsets, out)


def mask_of(bits: ByteArray, rows: int) -> BoolArray | None:
    """Return a mask of the non-null values of `rows` from a bitmap of nulls, lowest bit first; None without nulls."""
    null = np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)
    return ~null if null.any() else None

"""Record batches as TsBlocks, IoTDB's format of results.

    int32 columns | type byte of each | int32 rows | encoding of the times, and of each column | times | columns
    column   a byte: 1 with nulls, then a bit for each row, highest bit first, 1 for null; 0 without nulls
             values of the rows that are not null; BOOLEAN: a bit for each row
    values   big-endian; text: int32 length, bytes

Clients older than IoTDB 1.0, and the Python client of 1.3, expect a `DataSet` instead. A `DataSet` has columns without
heads, and its bitmaps have a 1 for each value that is not null.

Types are physical: DATE is INT32 (yyyymmdd), TIMESTAMP is INT64, STRING and BLOB are TEXT. Each column is encoded as a
whole. Pure: any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from saros_server.thrift.structs import DataSet
from saros_storage.base.arrow import numbers_from_arrow
from saros_storage.base.dates import dates_of
from saros_storage.base.types import NUMPY_DTYPE, DataType

_INT = struct.Struct(">i")
#: Encodings of columns.
_BOOLEANS, _FOUR_BYTES, _EIGHT_BYTES, _BYTES = 0, 1, 2, 3
#: For each data type: its physical type, its encoding, and the dtype of its numbers on the wire.
_FORMATS: dict[DataType, tuple[DataType, int, str]] = {
    DataType.BOOLEAN: (DataType.BOOLEAN, _BOOLEANS, "?"),
    DataType.INT32: (DataType.INT32, _FOUR_BYTES, ">i4"),
    DataType.INT64: (DataType.INT64, _EIGHT_BYTES, ">i8"),
    DataType.FLOAT: (DataType.FLOAT, _FOUR_BYTES, ">f4"),
    DataType.DOUBLE: (DataType.DOUBLE, _EIGHT_BYTES, ">f8"),
    DataType.TIMESTAMP: (DataType.INT64, _EIGHT_BYTES, ">i8"),
    DataType.DATE: (DataType.INT32, _FOUR_BYTES, ">i4"),
    DataType.TEXT: (DataType.TEXT, _BYTES, ""),
    DataType.STRING: (DataType.TEXT, _BYTES, ""),
    DataType.BLOB: (DataType.TEXT, _BYTES, ""),
}
_NO_NULLS, _NULLS = b"\0", b"\1"


def encode_block(batch: pa.RecordBatch, types: Sequence[DataType], *, timed: bool) -> bytes:
    """Return the TsBlock of a batch with columns of `types`, which follow a Time column if `timed`."""
    rows = batch.num_rows
    formats = [_FORMATS[type_] for type_ in types]
    columns = batch.columns[1:] if timed else batch.columns
    times = numbers_from_arrow(batch.column(0), NUMPY_DTYPE[DataType.INT64]) if timed else np.zeros(rows, np.int64)
    parts: list[bytes | memoryview] = [
        _INT.pack(len(types)),
        bytes(physical for physical, _, _ in formats),
        _INT.pack(rows),
        bytes([_EIGHT_BYTES, *(encoding for _, encoding, _ in formats)]),
        _NO_NULLS,
        times.astype(">i8").tobytes(),
    ]
    for column, type_ in zip(columns, types, strict=True):
        parts += _column(column, type_)
    return b"".join(parts)


def _column(column: pa.Array, type_: DataType) -> list[bytes | memoryview]:
    """Return the bytes of a column of a TsBlock."""
    valid = np.asarray(column.is_valid()) if column.null_count else None
    head: list[bytes | memoryview] = [_NO_NULLS] if valid is None else [_NULLS, np.packbits(~valid).tobytes()]
    if type_ is DataType.BOOLEAN:
        values = numbers_from_arrow(column, NUMPY_DTYPE[type_])
        return [*head, np.packbits(values if valid is None else values & valid).tobytes()]
    return [*head, _present(column if valid is None else column.drop_null(), type_)]


def encode_data_set(batch: pa.RecordBatch, types: Sequence[DataType], *, timed: bool) -> DataSet:
    """Return a batch as a data set, the old format. Takes the same arguments as `encode_block`."""
    columns = batch.columns[1:] if timed else batch.columns
    columns = columns[: len(types)]
    times = numbers_from_arrow(batch.column(0), NUMPY_DTYPE[DataType.INT64]) if timed else np.zeros(batch.num_rows)
    return DataSet(
        times.astype(">i8").tobytes(),
        [bytes(_present(column.drop_null(), type_)) for column, type_ in zip(columns, types, strict=True)],
        [np.packbits(np.asarray(column.is_valid())).tobytes() for column in columns],
    )


def _present(column: pa.Array, type_: DataType) -> bytes | memoryview:
    """Return the encoded values of a column without nulls; each BOOLEAN becomes one byte."""
    if type_.is_text:
        return _texts(column)
    numbers = numbers_from_arrow(column, NUMPY_DTYPE[type_])
    if type_ is DataType.DATE:
        numbers = dates_of(numbers)
    return numbers.astype(_FORMATS[type_][2]).tobytes()


def _texts(column: pa.Array) -> memoryview:
    """Return the texts of a column without nulls, each with its length in front."""
    rows = len(column)
    if not rows:
        return memoryview(b"")
    _, offset_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, rows + 1, column.offset * 4).astype(np.int64)
    lengths = np.diff(offsets)
    size = int(offsets[-1] - offsets[0])
    out = np.empty(size + 4 * rows, np.uint8)
    heads = offsets[:-1] - offsets[0] + 4 * np.arange(rows)
    is_text = np.ones(len(out), np.bool_)
    prefixes = lengths.astype(">i4").view(np.uint8).reshape(rows, 4)
    places = heads[:, None] + np.arange(4)
    out[places] = prefixes
    is_text[places] = False
    if size:
        out[is_text] = np.frombuffer(data_buffer, np.uint8, size, int(offsets[0]))
    return out.data

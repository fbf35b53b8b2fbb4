"""Columns on their way to a node: Arrow arrays, batches, messages.

    times, {name: values} --batch_of--> record batch --split--> parts of a message's size --message--> Arrow IPC bytes

Values that are Arrow or plain NumPy are not copied before the message is made. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa

from saros.errors import database_error
from saros_wire import protocol

#: Shapes of batches (names and types) whose Arrow schema is kept.
_SHAPES_KEPT = 4_096


def to_array(values: object) -> pa.Array:
    """A column as Arrow, nulls where pandas and lists have none. Raises DataError (507)."""
    if type(values) is np.ndarray and values.dtype.kind in "iuf" and values.ndim == 1:
        return pa.array(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        array = values if isinstance(values, pa.Array) else _converted(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise database_error(f"a column cannot be read as one type: {error}", 507) from error
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _converted(values: object) -> pa.Array:
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    plain = isinstance(values, np.ndarray) and values.dtype != object
    return pa.array(values, from_pandas=not plain)


def batch_of(times: object, columns: Mapping[str, object]) -> pa.RecordBatch:
    """Times, then the columns. Raises DataError, ProgrammingError (lengths)."""
    arrays = [to_array(times)]
    for name, values in columns.items():
        array = to_array(values)
        if len(array) != len(arrays[0]):
            raise database_error(f"column {name} has {len(array)} values for {len(arrays[0])} times", 2003)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=_schema(("", *columns), tuple(array.type for array in arrays)))


@lru_cache(_SHAPES_KEPT)
def _schema(names: tuple[str, ...], types: tuple[pa.DataType, ...]) -> pa.Schema:
    return pa.schema(list(zip(names, types, strict=True)))


def split(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in parts of about `INSERT_BYTES`; one without rows has none."""
    if batch.num_rows > 0 and batch.get_total_buffer_size() <= protocol.INSERT_BYTES:
        yield batch
        return
    rows = max(batch.num_rows * protocol.INSERT_BYTES // max(batch.nbytes, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def message(batch: pa.RecordBatch, device: str, sequence: int, *, aligned: bool | None) -> bytes:
    """The request of an Insert: an Arrow IPC stream without its end mark. `sequence` 0: none."""
    metadata = {protocol.DEVICE_KEY: device.encode(), protocol.ALIGNED_KEY: str(aligned).lower().encode()}
    if sequence:
        metadata[protocol.SEQUENCE_KEY] = str(sequence).encode()
    return b"".join((batch.schema.with_metadata(metadata).serialize(), batch.serialize()))

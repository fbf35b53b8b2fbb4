"""Read the result of a statement as Arrow messages, as batches, or as columns for JSON.

Only one thread at a time may use a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from saros_server.api import operations
from saros_server.api.arrow import Message
from saros_server.api.executions import ResultHead, ResultStream, Statement
from saros_server.http.session import HttpSession

_SCHEMAS_CACHED = 256
#: The first and the last second of the years 1 to 9999, since 1970. Many programs do not support other years.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Result(msgspec.Struct, frozen=True):
    """The rows of a statement, which can be read once."""

    head: ResultHead
    schema: pa.Schema
    messages: Iterator[Message]
    #: The stream of the rows that the first answer does not contain, or None if it contains all rows.
    stream: ResultStream | None

    @property
    def is_timed(self) -> bool:
        """True if the first column has the times of the rows."""
        return bool(len(self.schema)) and self.schema.field(0).name == "Time" and not self.schema.field(0).nullable

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        return (message.batch(self.schema) for message in self.messages)

    def close(self) -> None:
        """Cancel the query if it is still running. Idempotent."""
        if self.stream is not None:
            self.stream.close()


def execute(session: HttpSession, statement: Statement) -> tuple[ResultHead, Result | None]:
    """Execute a statement. Its result is None if it returns no rows. Raises the errors of the statement."""
    answer = session.call(operations.EXECUTE, statement)
    if not answer.head.schema:
        return answer.head, None
    stream = session.call(operations.FETCH, answer.cursor) if answer.cursor else None
    messages = chain(answer.messages, stream or ())
    return answer.head, Result(answer.head, _schema(answer.head.schema), messages, stream)


@lru_cache(_SCHEMAS_CACHED)
def _schema(encoded: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(encoded))


def json_column(array: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column for `json_response`. Times become integers, dates ISO 8601 texts, blobs 0x and hex digits."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        array = array.cast(pa.int64())
    elif pa.types.is_date32(type_):
        array = array.cast(pa.string())
    elif pa.types.is_binary(type_):
        return [None if value is None else f"0x{value.hex()}" for value in array.to_pylist()]
    if array.null_count or pa.types.is_string(array.type):
        return array.to_pylist()
    return array.to_numpy(zero_copy_only=False) if isinstance(array, pa.Array) else array.to_numpy()


def iso_times(array: pa.Array) -> pa.Array:
    """Return the timestamps as ISO 8601 texts in UTC, or all as integers if any is not in the years 1 to 9999."""
    unit = array.type.unit
    ticks = array.cast(pa.int64())
    bounds = pc.min_max(ticks).as_py()
    low, high = bounds["min"], bounds["max"]
    if low is not None and not (_FIRST_SECOND * _TICKS[unit] <= low <= high <= _LAST_SECOND * _TICKS[unit]):
        return ticks
    return pc.strftime(ticks.cast(pa.timestamp(unit, tz="UTC")), format="%Y-%m-%dT%H:%M:%SZ")

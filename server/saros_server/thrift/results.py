"""Open results of a connection, and the pages in which its client fetches them.

    EXECUTE --> head, first batches [, cursor --FETCH--> stream of the others] --page(rows)--> batches ... the end

A page has as many rows as the client asked for, or fewer if the rows are large. The batches of a small page are joined,
since clients that make data frames choose the type of a column for each batch. A result is read only as far as its
client fetches it, and is closed at its end. One thread at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

import msgspec
import pyarrow as pa

from saros_server.api.arrow import Message
from saros_server.api.cancellation import CancelToken
from saros_server.api.executions import Answer, ResultStream
from saros_storage.base.types import DataType

#: The default number of rows of a page: IoTDB's default.
PAGE_ROWS = 5_000
#: A page ends after this many bytes; a batch has at most about a quarter of them.
_PAGE_BYTES = 16 << 20
#: The batches of a page are joined up to this many bytes.
_JOINED_BYTES_MAX = 1 << 20
#: The maximum number of open results of a connection.
RESULTS_MAX = 16
#: The maximum number of cached result shapes, and the maximum number of columns of a cached shape.
_SHAPES_CACHED, _SMALL_WIDTH = 256, 64


class Page(msgspec.Struct, frozen=True):
    """A page of a result; `more` is true if there may be further rows."""

    batches: list[pa.RecordBatch]
    rows: int
    more: bool


class ResultShape(msgspec.Struct, frozen=True):
    """The columns of a result. They are sent in this order: the first column of each name, then the duplicates.

    Clients older than IoTDB 2.0 find columns by name, and expect as many columns as distinct names.
    """

    schema: pa.Schema
    #: There is a Time column, which is never null.
    is_timed: bool
    #: The names and types of the columns after Time.
    names: list[str]
    type_names: list[str]
    #: Positions in the order of sending: that of the first column of each name, and that of each column.
    name_places: dict[str, int]
    places: list[int]
    #: The types of the columns in the order of sending.
    types: list[DataType]
    #: The columns of a batch, including Time, in the order of sending; None if the batch already has this order.
    order: list[int] | None


def _shape(schema_bytes: bytes, type_names: tuple[str, ...]) -> ResultShape:
    schema = pa.ipc.read_schema(pa.py_buffer(schema_bytes))
    is_timed = bool(len(schema)) and schema.field(0).name == "Time" and not schema.field(0).nullable
    first = 1 if is_timed else 0
    names, own = schema.names[first:], list(type_names[first:])
    firsts = {name: column for column, name in reversed(list(enumerate(names)))}
    sent = sorted(range(len(names)), key=lambda column: (firsts[names[column]] != column, column))
    places = sorted(range(len(sent)), key=sent.__getitem__)
    name_places = {name: places[column] for name, column in firsts.items()}
    order = None if len(firsts) == len(names) else [*range(first), *(first + column for column in sent)]
    return ResultShape(
        schema, is_timed, names, own, name_places, places, [DataType[own[column]] for column in sent], order
    )


_small_shape = lru_cache(_SHAPES_CACHED)(_shape)


class OpenResult:
    """A result that the client is fetching."""

    def __init__(self, answer: Answer, stream: ResultStream | None, statement: int) -> None:
        """Open the result; `stream` yields the batches that are not in the answer."""
        types = tuple(answer.head.type_names)
        self.shape = (_small_shape if len(types) <= _SMALL_WIDTH else _shape)(answer.head.schema, types)
        #: The statement that the result belongs to; 0 if it belongs to no statement.
        self.statement = statement
        self._stream = stream
        self._messages: Iterator[Message] | None = None if stream is None else iter(stream)
        #: Batches that were read and not sent.
        self._batches = deque(self._batch(message) for message in answer.messages)

    def page(self, rows_wanted: int, cancel: CancelToken) -> Page:
        """Return the next rows; an empty page means the end. Raises the error that ended the query."""
        if self._stream is not None and not cancel.on_cancel(self._stream.close):
            self._stream.close()
        left = rows_wanted if rows_wanted > 0 else PAGE_ROWS
        batches, rows, size = list[pa.RecordBatch](), 0, 0
        while left and size < _PAGE_BYTES and (batch := self._take(left)) is not None:
            batches.append(batch)
            left -= batch.num_rows
            rows += batch.num_rows
            size += batch.nbytes
        if len(batches) > 1 and size <= _JOINED_BYTES_MAX:
            batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
        return Page(batches, rows, bool(self._batches) or self._messages is not None)

    def _take(self, rows: int) -> pa.RecordBatch | None:
        """Return the next batch, of at most `rows` rows, or None at the end of the result."""
        while not self._batches:
            message = None if self._messages is None else next(self._messages, None)
            if message is None:
                self._messages = None
                return None
            self._batches.append(self._batch(message))
        batch = self._batches.popleft()
        rows = min(rows, max(batch.num_rows * (_PAGE_BYTES // 4) // max(batch.nbytes, 1), 1))
        if batch.num_rows > rows:
            self._batches.appendleft(batch.slice(rows))
        return batch.slice(0, rows)

    def _batch(self, message: Message) -> pa.RecordBatch:
        batch = message.batch(self.shape.schema)
        return batch if self.shape.order is None else batch.select(self.shape.order)

    def close(self) -> None:
        """End the query if it is still running. Idempotent."""
        self._batches.clear()
        if self._stream is not None:
            self._stream.close()


def first_column(answer: Answer) -> list[str]:
    """Return the texts of the first column of a complete answer."""
    schema = pa.ipc.read_schema(pa.py_buffer(answer.head.schema))
    batches = [message.batch(schema) for message in answer.messages]
    return [text for batch in batches for text in batch.column(0).to_pylist()]


class OpenResults:
    """The open results of a connection, identified by numbers."""

    def __init__(self) -> None:
        self._results: dict[int, OpenResult] = {}

    def __len__(self) -> int:
        return len(self._results)

    def add(self, number: int, result: OpenResult) -> None:
        """Add a result; close the oldest one if there are too many, since clients may forget to close results."""
        self._results[number] = result
        if len(self._results) > RESULTS_MAX:
            self.discard(next(iter(self._results)))

    def find(self, number: int) -> OpenResult | None:
        """Return the result of a number; None if it is not open."""
        return self._results.get(number)

    def discard(self, number: int) -> None:
        """Close a result, if it is open."""
        with suppress(KeyError):
            self._results.pop(number).close()

    def close_of(self, statement: int) -> None:
        """Close the results of a statement."""
        for number in [number for number, result in self._results.items() if result.statement == statement]:
            self.discard(number)

    def close(self) -> None:
        """Close all results."""
        for number in list(self._results):
            self.discard(number)

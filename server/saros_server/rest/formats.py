"""Encode results as Arrow IPC, CSV, JSON lines or Parquet, in chunks, while the engine produces batches.

| format | content type | times | missing values |
|---|---|---|---|
| arrow | application/vnd.apache.arrow.stream | timestamp | null |
| csv | text/csv | ISO 8601 | empty |
| json | application/x-ndjson | ISO 8601 | null, also for NaN |
| parquet | application/vnd.apache.parquet | timestamp | null |

Pure: any thread.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from saros_server.http.errors import HttpError
from saros_server.http.response import Chunk
from saros_server.rest.results import Result, iso_times, json_column

#: The end of an Arrow IPC stream: a continuation marker and a length of 0.
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
#: A Parquet row group is written once the batches in it have this total size.
_ROW_GROUP_BYTES = 16 << 20
#: The number of rows that are encoded as JSON at once.
_JSON_ROWS = 10_000

EncodedResult = Iterator[Chunk]


class Format(msgspec.Struct, frozen=True):
    """A format of results."""

    name: str
    content_type: str
    encode: Callable[[Result], EncodedResult]


def _arrow(result: Result) -> EncodedResult:
    """Yield the engine's messages unchanged."""
    yield result.head.schema
    yield from (message.buffers for message in result.messages)
    yield _END_OF_STREAM


def _csv(result: Result) -> EncodedResult:
    options = pa.csv.WriteOptions(include_header=False)
    yield _csv_header(result.schema.names)
    for batch in result.batches():
        sink = io.BytesIO()
        pa.csv.write_csv(_as_texts(batch), sink, options)
        yield sink.getvalue()


def _csv_header(names: list[str]) -> bytes:
    return (",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n").encode()


def _as_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch, with its times and blobs converted to texts."""
    arrays = [
        iso_times(column)
        if pa.types.is_timestamp(column.type)
        else pa.array(json_column(column), pa.string())
        if pa.types.is_binary(column.type)
        else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _json(result: Result) -> EncodedResult:
    names = _distinct(result.schema.names)
    for batch in result.batches():
        for start in range(0, batch.num_rows, _JSON_ROWS):
            columns = [_json_values(column) for column in batch.slice(start, _JSON_ROWS).columns]
            rows = (orjson.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
            yield b"\n".join(rows) + b"\n"


def _json_values(column: pa.Array) -> Any:
    found = json_column(iso_times(column) if pa.types.is_timestamp(column.type) else column)
    return found if isinstance(found, list) else found.tolist()


def _parquet(result: Result) -> EncodedResult:
    names = _distinct(result.schema.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(result.schema, names, strict=True)])
    sink = _Drained()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema) as writer:
        group: list[pa.RecordBatch] = []
        for batch in result.batches():
            group.append(batch.rename_columns(names))
            if sum(part.nbytes for part in group) >= _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group, schema))
                group.clear()
                yield sink.drain()
        if group:
            writer.write_table(pa.Table.from_batches(group, schema))
    yield sink.drain()


class _Drained(io.RawIOBase):
    """A file in memory. The bytes in it can be removed before more bytes are written."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Append bytes."""
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def drain(self) -> bytes:
        """Remove and return the bytes written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _distinct(names: list[str]) -> list[str]:
    """Return the names, with a number added to each name that occurs again: `s`, `s (2)`."""
    found: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name} ({number})"
        found[candidate] = None
    return list(found)


FORMATS = {
    found.name: found
    for found in (
        Format("csv", "text/csv; charset=utf-8", _csv),
        Format("arrow", "application/vnd.apache.arrow.stream", _arrow),
        Format("json", "application/x-ndjson", _json),
        Format("parquet", "application/vnd.apache.parquet", _parquet),
    )
}
#: The name of the format for each media type that an Accept header may contain.
_BY_MEDIA_TYPE = {
    "text/csv": "csv",
    "text/*": "csv",
    "*/*": "csv",
    "text/html": "csv",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/x-ndjson": "json",
    "application/jsonl": "json",
    "application/json": "json",
    "application/vnd.apache.parquet": "parquet",
    "application/*": "json",
}


def format_of(accept: str) -> Format:
    """Return the supported format that an Accept header prefers to all others. Raises HttpError 406."""
    ranked = sorted((_weighted(part) for part in (accept or "*/*").split(",")), key=lambda found: -found[1])
    for media_type, weight in ranked:
        name = _BY_MEDIA_TYPE.get(media_type)
        if name is not None and weight > 0:
            return FORMATS[name]
    types = ", ".join(found.content_type.partition(";")[0] for found in FORMATS.values())
    raise HttpError(406, f"results come as {types}: accept one of them")


def _weighted(part: str) -> tuple[str, float]:
    media_type, *parameters = (word.strip().lower() for word in part.split(";"))
    weights = [word.removeprefix("q=") for word in parameters if word.startswith("q=")]
    try:
        return media_type, float(weights[0]) if weights else 1.0
    except ValueError:
        return media_type, 0.0

"""The process that reads Parquet files: `python -m saros_server.sources.parquet_worker BYTES`.

A file can declare pages, texts and dictionaries of any size in a few bytes, and Arrow allocates the declared size. In
this process, such an allocation fails at the process's limit (RLIMIT_DATA) instead of exhausting the memory of the
node. A file that crashes the reader ends only this process. This package is the only one of Saros that the process
imports.

    standard input     {"open": PATH}                   open a file, and answer with its schema
                       {"columns": [...], "rows": N}    answer with the rows of the open file
    standard output    frames: kind (1 byte), length (8 bytes, big endian), payload

    S    rows (8 bytes), schema          B    an Arrow stream with one batch
    D    the end of the rows             E    an error, as a text        M    the memory limit was exceeded

In Arrow's dictionaries and views, a few bytes may represent many. This process expands them: the batches that it sends
have plain columns.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

#: Limits on the number of cells in a batch, and on the size of each piece in which a batch is sent.
_CELLS_MAX = 4 << 20
_BATCH_BYTES_MAX = 64 << 20
#: Number of bytes that are read from the file at a time, for each column.
_BUFFER_BYTES = 64 << 10
#: Number of row groups whose metadata is used to estimate the size of a row.
_SAMPLED_GROUPS = 100
_HEAD = struct.Struct(">cQ")


def main() -> None:
    """Serve the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # libraries that print must not corrupt the frames
    pa.set_cpu_count(1)
    _limit_memory(int(sys.argv[1]))
    file: pq.ParquetFile | None = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if "open" in request:
                file = pq.ParquetFile(request["open"], pre_buffer=False, buffer_size=_BUFFER_BYTES)
                _send(answers, b"S", struct.pack(">q", file.metadata.num_rows), file.schema_arrow.serialize())
            elif file is not None:
                for batch in _batches(file, request["columns"], request["rows"]):
                    _send(answers, b"B", _stream_of(batch))
                _send(answers, b"D")
        except MemoryError:
            file = None
            _send(answers, b"M")
        except (pa.ArrowException, OSError, ValueError) as error:
            _send(answers, b"E", str(error).encode(errors="replace"))


def _limit_memory(memory_bytes: int) -> None:
    """Limit the memory of this process, if the system supports it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _send(answers: BinaryIO, kind: bytes, *parts: bytes | pa.Buffer) -> None:
    answers.write(_HEAD.pack(kind, sum(map(len, parts))))
    for part in parts:
        answers.write(part)
    answers.flush()


def _stream_of(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _batches(file: pq.ParquetFile, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows as plain batches. Raises ValueError for a row that is too large."""
    for batch in file.iter_batches(_rows_at_once(file, rows), columns=columns, use_threads=False):
        plain = [_plain(column) for column in batch.columns]
        yield from _pieces(pa.RecordBatch.from_arrays(plain, batch.schema.names))


def _rows_at_once(file: pq.ParquetFile, rows: int) -> int:
    """Return the number of rows to read at once: fewer than requested if rows have many columns or long texts."""
    about = file.metadata
    groups = [about.row_group(place) for place in islice(range(about.num_row_groups), _SAMPLED_GROUPS)]
    row_bytes: int = sum(group.total_byte_size for group in groups) // max(sum(group.num_rows for group in groups), 1)
    fitting: int = min(rows, _CELLS_MAX // max(about.num_columns, 1), _BATCH_BYTES_MAX // max(row_bytes, 1))
    return max(fitting, 1)


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column.cast(pa.binary()) if pa.types.is_binary_view(column.type) else column


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces, none of which exceeds the limit. Raises ValueError for a row that is too large."""
    if batch.nbytes <= _BATCH_BYTES_MAX:
        yield batch
        return
    if batch.num_rows == 1:
        raise ValueError(f"a row has more than {_BATCH_BYTES_MAX >> 20} MiB")
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the import has ended
        main()

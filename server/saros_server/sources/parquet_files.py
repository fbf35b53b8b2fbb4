"""Parquet files: typed columns, and metadata in which `saros export` writes the device and the types.

Since a small file can declare huge contents, the files are read by a separate process (`parquet_worker`).

schema    saros.device    path of the device of the columns
          saros.aligned   true or false
column    saros.type      the type of the series; Arrow has only one type for TEXT and STRING
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from saros_server.sources.opened_file import PARQUET_MAGIC, InputFile
from saros_server.sources.parquet_worker.process import ParquetRefused, ParquetWorker
from saros_server.sources.source_layout import Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceOptions
from saros_storage.base.arrow import data_type_of
from saros_storage.base.types import STRING_TYPES, DataType

_DEVICE, _ALIGNED, _TYPE = b"saros.device", b"saros.aligned", b"saros.type"


class StatedDevice(msgspec.Struct, frozen=True):
    """The device that a file's metadata names for its columns."""

    path: str
    aligned: bool


def with_metadata(schema: pa.Schema, types: Sequence[str], device: StatedDevice | None) -> pa.Schema:
    """Return the schema with metadata added. `types` are the types of all its columns, including the time."""
    fields = [field.with_metadata({_TYPE: type_}) for field, type_ in zip(schema, types, strict=True)]
    about = {_DEVICE: device.path, _ALIGNED: str(device.aligned).lower()} if device else None
    return pa.schema(fields, about)


def stated_device(file: Path, worker: ParquetWorker) -> StatedDevice | None:
    """Return the device that a Parquet file's metadata names, or None."""
    with file.open("rb") as stream:
        if stream.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
            return None
    try:
        about = worker.head(file, str(file)).schema.metadata or {}
    except (ParquetRefused, pa.ArrowException):  # the file is damaged, which `read_parquet` reports
        return None
    path = about.get(_DEVICE)
    return None if path is None else StatedDevice(path.decode(), about.get(_ALIGNED) == b"true")


def read_parquet(
    file: InputFile, options: SourceOptions, series: Series, worker: ParquetWorker
) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, ParquetRefused, OSError."""
    head = worker.head(file.path, file.name)
    types = {field.name: _stated_type(field) for field in head.schema}
    stated = {name: type_ for name, type_ in types.items() if type_ is not None}
    layout = Layout(head.schema.names, stated, options, series, file.name)
    row = 0
    for batch in worker.batches(list(stated), options.batch_rows, file.name):
        row += batch.num_rows
        position = min(file.size * row // max(head.rows, 1), file.size)
        yield layout.convert(_with_all_columns(batch, head.schema), row - batch.num_rows, position)


def _with_all_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with all columns of the file. Columns of unsupported types, which were not read, are null."""
    read = {name: batch.column(name) for name in batch.schema.names}
    columns = [
        pa.nulls(batch.num_rows, field.type) if data_type_of(field.type) is None else read[field.name]
        for field in schema
    ]
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, schema.metadata))


def _stated_type(field: pa.Field) -> DataType | None:
    """Return the type in the column's metadata if it agrees with the column's Arrow type. Otherwise, use the latter."""
    found = data_type_of(field.type)
    said = (field.metadata or {}).get(_TYPE, b"").decode()
    return DataType[said] if found in STRING_TYPES and said in (t.name for t in STRING_TYPES) else found

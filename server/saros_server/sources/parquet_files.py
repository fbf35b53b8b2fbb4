"""Parquet: typed columns; and the device and types that `saros export` writes into a file's metadata.

of the schema    saros.device    path of the device whose series the columns are
                 saros.aligned   true or false
of a column      saros.type      the type of the series; Arrow has one type for TEXT and STRING
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from saros_server.sources.opened_file import InputFile
from saros_server.sources.source_layout import Layout, Series, SourceBatch
from saros_server.sources.source_options import SourceOptions
from saros_storage.base.arrow import data_type_of
from saros_storage.base.types import STRING_TYPES, DataType

_DEVICE, _ALIGNED, _TYPE = b"saros.device", b"saros.aligned", b"saros.type"


@dataclass(frozen=True, slots=True)
class StatedDevice:
    """The device that a file names as that of its columns."""

    path: str
    aligned: bool


def with_metadata(schema: pa.Schema, types: Sequence[str], device: StatedDevice | None) -> pa.Schema:
    """Return the schema of a file with these types of its columns, the time among them."""
    fields = [field.with_metadata({_TYPE: type_}) for field, type_ in zip(schema, types, strict=True)]
    about = {_DEVICE: device.path, _ALIGNED: str(device.aligned).lower()} if device else None
    return pa.schema(fields, about)


def stated_device(file: Path) -> StatedDevice | None:
    """The device that the file names, if it is Parquet and names one."""
    import pyarrow.parquet as pq

    try:
        about = pq.read_schema(file).metadata or {}
    except (OSError, pa.ArrowInvalid):  # no Parquet, or damaged, as reading it tells
        return None
    path = about.get(_DEVICE)
    return None if path is None else StatedDevice(path.decode(), about.get(_ALIGNED) == b"true")


def read_parquet(file: InputFile, options: SourceOptions, series: Series) -> Iterator[SourceBatch]:
    """Yield the file's batches. Raises SourceError, OSError, pa.ArrowInvalid."""
    import pyarrow.parquet as pq

    source = pq.ParquetFile(file.path)
    schema = source.schema_arrow
    types = {field.name: _stated_type(field) for field in schema}
    stated = {name: type_ for name, type_ in types.items() if type_ is not None}
    layout = Layout(schema.names, stated, options, series, file.name)
    total, row = max(source.metadata.num_rows, 1), 0
    for batch in source.iter_batches(options.batch_rows):
        row += batch.num_rows
        yield layout.convert(batch, row - batch.num_rows, file.size * row // total)


def _stated_type(field: pa.Field) -> DataType | None:
    """The type in the metadata, unless the column was given another one since; else that of Arrow's type."""
    found = data_type_of(field.type)
    said = (field.metadata or {}).get(_TYPE, b"").decode()
    return DataType[said] if found in STRING_TYPES and said in (t.name for t in STRING_TYPES) else found

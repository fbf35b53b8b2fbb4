"""Export to one TsFile: devices in path order, each series with its declared encoding and compression.

Rows are read batch by batch, and a chunk has about a million rows, so that memory use does not depend on the length of
a series.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

import saros
from saros_server.api.arrow import to_column
from saros_shell.output.progress import Progress
from saros_shell.output.user_files import cannot_write
from saros_shell.transfer.exported_devices import Device
from saros_storage.base.block import Column
from saros_storage.base.paths import sql_node
from saros_storage.base.types import TIME_UNITS, Compressor, DataType, Encoding, Int64Array
from saros_storage.io.disk import LocalDisk
from saros_storage.schema import stored_encoding
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

_CHUNK_ROWS = 1_000_000


def write_tsfile(
    connection: saros.Connection, devices: Sequence[Device], where: str, target: Path, progress: Progress
) -> int:
    """Write the devices to `target` and return the number of points. Raises saros.Error."""
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.touch()  # with the user's usual permissions: `LocalDisk` creates files that only their owner can read
        file = LocalDisk().create(str(part))
        try:
            writer = TsFileWriter(file)
            points = 0
            for number, device in enumerate(devices, 1):
                points += _write_device(connection, writer, device, where)
                progress.move_to(number)
                progress.show_points(points)
            writer.finish()
            file.sync()
        finally:
            file.close()
        part.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    finally:
        part.unlink(missing_ok=True)
    return points


def _write_device(connection: saros.Connection, writer: TsFileWriter, device: Device, where: str) -> int:
    points = 0
    source = f"from {device.path}{where}"
    if device.aligned:
        names = ", ".join(sql_node(name) for name, *_ in device.series)
        for times, columns in _chunks(connection, f"select {names} {source}", device.series):
            stored = [
                AlignedColumn(name, column.type, *_stored(column.type, encoding, compressor), column)
                for (name, _, encoding, compressor), column in zip(device.series, columns, strict=True)
                if column.valid is None or column.valid.any()
            ]
            writer.write_aligned(device.path, times, stored)
            points += sum(c.column.present_count for c in stored)
        return points
    for series in device.series:
        name, _, encoding, compressor = series
        for times, (column,) in _chunks(connection, f"select {sql_node(name)} {source}", (series,)):
            stored_as = _stored(column.type, encoding, compressor)
            writer.write_series(device.path, name, column.type, *stored_as, times, column.values)
            points += len(times)
    return points


def _stored(type_: DataType, encoding: str, compressor: str) -> tuple[Encoding, Compressor]:
    return stored_encoding(type_, Encoding[encoding]), Compressor[compressor]


def _chunks(
    connection: saros.Connection, text: str, series: Sequence[tuple[str, str, str, str]]
) -> Iterator[tuple[Int64Array, list[Column]]]:
    """Yield the rows of a query in chunks: times, and a column per series."""
    with connection.execute(text) as cursor:
        schema, batches = cursor.fetch_stream()
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= _CHUNK_ROWS:
                yield _columns(pa.Table.from_batches(waiting, schema), series)
                waiting, rows = [], 0
        if waiting:
            yield _columns(pa.Table.from_batches(waiting, schema), series)


def _columns(table: pa.Table, series: Sequence[tuple[str, str, str, str]]) -> tuple[Int64Array, list[Column]]:
    unit = TIME_UNITS[table.schema.field(0).type.unit]
    times = table.column(0).cast(pa.int64()).to_numpy()
    columns = []
    for number, (_, type_, _, _) in enumerate(series, 1):
        column = to_column(table.column_names[number], table.column(number), unit)
        columns.append(Column(DataType[type_], column.values, column.valid))
    return times, columns

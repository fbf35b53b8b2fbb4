"""Split a file with points of several partitions, so that no resulting file crosses the border of a time slice.

    root.a.d   |--chunk--|--chunk--|          slice 0: root.a.d |--chunk--|-ch    slice 1: unk--|
                    slice 0   | slice 1

Points are decoded, and written again with the encodings of their series. Partitions are written one after another, so
memory holds only the rows of one chunk. Pure over mapped files, except for the writer's file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from saros_storage.base.block import Block
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import Int64Array
from saros_storage.loading.content import ForeignDevice
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex
from saros_storage.schema import SeriesSchema, stored_encoding
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.writer import AlignedColumn, TsFileWriter

#: If a file has points in more partitions than this, its times are probably in another unit.
PARTITIONS_MAX = 10_000
#: Database and slice.
Key = tuple[str, int]


def partitions_of(
    reader: TsFileReader, content: Sequence[ForeignDevice], databases: Mapping[str, str], interval: int
) -> dict[Key, list[ForeignDevice]]:
    """Return the devices by partition, sorted. Raises UserMistake 2007 if there are too many partitions."""
    found: dict[Key, list[ForeignDevice]] = {}
    for device in content:
        if device.span is None:
            continue
        for number in sorted(_slices(reader, device, interval)):
            found.setdefault((databases[device.path], number), []).append(device)
        if len(found) > PARTITIONS_MAX:
            message = f"{reader.path} has points in more than {PARTITIONS_MAX} partitions; check its time unit"
            raise UserMistake(message, code=2007)
    return {key: found[key] for key in sorted(found)}


def _slices(reader: TsFileReader, device: ForeignDevice, interval: int) -> set[int]:
    """Return the numbers of the time slices in which a device has points."""
    assert device.span is not None
    first, last = device.span.start // interval, device.span.end // interval
    if first == last:
        return {first}
    index = reader.device(device.path)
    assert index is not None
    found: set[int] = set()
    for names, chunks in _columns(index):
        for number, chunk in enumerate(chunks):
            known = chunk.statistics
            if known is None:
                continue
            first, last = known.start // interval, known.end // interval
            if first == last:
                found.add(first)
            else:
                for block in _rows(reader, index, names, number, known.start, known.end + 1):
                    found.update(np.unique(block.times // interval).tolist())
    return found


def _columns(index: DeviceIndex) -> Iterator[tuple[tuple[str, ...], tuple[ChunkMeta, ...]]]:
    """Yield the names of series that are read together, with their chunks.

    Series of an aligned device are read together, other series one by one.
    """
    if index.time is not None:
        if index.series:
            yield tuple(index.series), index.time.chunks
        return
    for name, series in index.series.items():
        yield (name,), series.chunks


def _rows(
    reader: TsFileReader, index: DeviceIndex, names: Sequence[str], chunk: int, start: int, end: int
) -> Iterator[Block]:
    """Yield one block with the rows of a chunk in [start, end) that have a value, or nothing if there are none."""
    pages = reader.pages(index, names, chunk)
    wanted = [n for n, page in enumerate(pages) if page.start < end and page.end >= start]
    if not wanted:
        return
    block, _ = reader.read(index, names, chunk, wanted[0], wanted[-1] + 1)
    first, stop = np.searchsorted(block.times, np.array([start, end]))
    block = block.slice(int(first), int(stop)).without_empty_rows()
    if block.rows:
        yield block


class Chunk(msgspec.Struct, frozen=True):
    """The rows of one chunk, or of one chunk group of an aligned device; `series` describes the columns of `block`."""

    device: ForeignDevice
    series: Sequence[SeriesSchema]
    block: Block


def chunks_of(reader: TsFileReader, devices: Sequence[ForeignDevice], start: int, end: int) -> Iterator[Chunk]:
    """Yield the points in [start, end) of the devices, in the order in which a file contains them."""
    for device in devices:
        index = reader.device(device.path)
        assert index is not None
        known = {series.measurement: series for series in device.series}
        for names, chunks in _columns(index):
            for number, chunk in enumerate(chunks):
                span = chunk.statistics
                if span is None or span.start >= end or span.end < start:
                    continue
                for block in _rows(reader, index, names, number, start, end):
                    yield Chunk(device, [known[name] for name in names], block)


def write_chunk(writer: TsFileWriter, chunk: Chunk) -> None:
    """Write rows with the encodings of their series."""
    device, block = chunk.device, chunk.block
    times: Int64Array = block.times
    stored = [
        (s, stored_encoding(s.type, s.encoding), column) for s, column in zip(chunk.series, block.columns, strict=True)
    ]
    if not device.aligned:
        ((one, encoding, column),) = stored
        writer.write_series(device.path, one.measurement, one.type, encoding, one.compressor, times, column.values)
        return
    columns = [
        AlignedColumn(s.measurement, s.type, encoding, s.compressor, column)
        for s, encoding, column in stored
        if column.valid is None or column.valid.any()
    ]
    writer.write_aligned(device.path, times, columns)

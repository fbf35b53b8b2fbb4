"""TimeseriesMetadata: one series of a device in the index, with the list of its chunks.

    u8 type | vstr name | u8 data type | uvar bytes of chunk list | statistics | { i64 offset, [statistics] }*

Bit 0 of the first byte is set if there are several chunks, each with its own statistics. A single chunk has the
statistics of the series. The time column of an aligned device comes first and is recognised by its data type, because
some writers omit `TIME_MASK` in the first byte.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from saros_storage.base.errors import UnsupportedFile
from saros_storage.base.types import ByteArray, DataType, Int64Array
from saros_storage.scan.tsfile_access import ChunkMeta, DeviceIndex, SeriesIndex
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.device_id import canonical_measurement
from saros_storage.tsfile.structure.format import HEAD_BYTES, PAGES_MASK, VECTOR_TYPE, Cursor, i64, uvar
from saros_storage.tsfile.structure.statistics import StoredStatistics

_OFFSET_BYTES = 8
_DATA_TYPES = {int(t): t for t in DataType}


def encode_series(
    mask: int,
    name: bytes,
    type_: DataType | None,
    series: StoredStatistics,
    chunks: Sequence[tuple[int, StoredStatistics]],
) -> bytes:
    """Encode a TimeseriesMetadata. `name` is already encoded; `type_` is None for the time column."""
    many = len(chunks) > 1
    if many:
        listed = b"".join([i64(offset) + stats.encode(type_, chunk) for offset, chunk in chunks])
    else:
        listed = i64(chunks[0][0])
    kind, type_id = bytes((mask | many,)), bytes((VECTOR_TYPE if type_ is None else type_,))
    return b"".join((kind, name, type_id, uvar(len(listed)), stats.encode(type_, series), listed))


def encode_series_rows(
    mask: int, name: bytes, type_: DataType | None, statistics: ByteArray, offsets: Int64Array
) -> list[ByteArray]:
    """Encode the TimeseriesMetadata of series with one chunk each, as matrices with a row for each series.

    When the matrices are joined side by side, each row is the TimeseriesMetadata of one series. For each series,
    `statistics` has a row, and `offsets` has an element. The other arguments are as in `encode_series`.
    """
    type_id = VECTOR_TYPE if type_ is None else type_
    head = np.frombuffer(bytes((mask,)) + name + bytes((type_id,)) + uvar(_OFFSET_BYTES), np.uint8)
    repeated = np.broadcast_to(head, (len(offsets), len(head)))
    return [repeated, statistics, offsets.astype(">i8").view(np.uint8).reshape(-1, _OFFSET_BYTES)]


def decode_type(cursor: Cursor) -> DataType | None:
    """Read a data type byte; return None for the type of a time column. Raises UnsupportedFile."""
    number = cursor.u8()
    if number == VECTOR_TYPE:
        return None
    try:
        return _DATA_TYPES[number]
    except KeyError:
        raise UnsupportedFile(cursor.file, f"data type {number}") from None


def read_device(device: str, cursors: Iterable[Cursor], data_end: int) -> DeviceIndex:
    """Read the index of a device from its runs of TimeseriesMetadata. Raises CorruptFile, UnsupportedFile."""
    time: SeriesIndex | None = None
    series: dict[str, SeriesIndex] = {}
    for cursor in cursors:
        while cursor.rest:
            at = cursor.pos
            type_, found, _ = _read_series(cursor, data_end)
            if type_ is None:
                if series or time is not None:
                    raise cursor.corrupt("a time column that is not its device's first")
                time = found
                continue
            if time is not None and len(found.chunks) != len(time.chunks):
                cursor.pos = at
                raise cursor.corrupt(
                    f"column {found.measurement} has {len(found.chunks)} chunks, its time column {len(time.chunks)}"
                )
            series.setdefault(found.measurement, found)
    return DeviceIndex(device, time, series)


def read_stored(cursors: Iterable[Cursor], data_end: int) -> dict[str, list[StoredStatistics]]:
    """Return the stored statistics of each series' chunks, for copying the chunks. The time column's name is empty."""
    found: dict[str, list[StoredStatistics]] = {}
    for cursor in cursors:
        while cursor.rest:
            _, series, stored = _read_series(cursor, data_end)
            found.setdefault(series.measurement, stored)
    return found


def _read_series(cursor: Cursor, data_end: int) -> tuple[DataType | None, SeriesIndex, list[StoredStatistics]]:
    many = bool(cursor.u8() & PAGES_MASK)
    name = canonical_measurement(cursor.name())
    type_ = decode_type(cursor)
    size = cursor.uvar()
    all_stored = stats.decode(type_, cursor)
    whole = stats.reader_statistics(type_, all_stored)
    if size > cursor.rest:
        raise cursor.corrupt(f"a chunk list of {size} bytes")
    end = cursor.pos + size
    chunks = []
    stored = []
    while cursor.pos < end:
        offset = cursor.i64()
        if not HEAD_BYTES <= offset < data_end:
            raise cursor.corrupt(f"a chunk at byte {offset}")
        stored.append(stats.decode(type_, cursor) if many else all_stored)
        chunks.append(ChunkMeta(offset, stats.reader_statistics(type_, stored[-1]) if many else whole))
    if cursor.pos != end or not (many or len(chunks) == 1):
        raise cursor.corrupt(f"the chunk list of {name or 'the time column'} does not fill its {size} bytes")
    known = [c.statistics for c in chunks if c.statistics is not None]
    if any(a.end >= b.start for a, b in pairwise(known)):
        raise cursor.corrupt(f"the chunks of {name or 'the time column'} overlap")
    shown = DataType.TIMESTAMP if type_ is None else type_
    return type_, SeriesIndex(name, shown, whole, tuple(chunks)), stored

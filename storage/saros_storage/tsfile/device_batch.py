"""Encode the chunk groups of many devices together, if each device has only a few rows.

    DeviceBatch     devices with the same series and the same number of rows: a matrix of times, a matrix per series
    encode_devices  the chunk group of each device, and then, once its position is known, its part of the index

For chunks of a few rows, calls and objects take longer than encoding the values. Therefore one call encodes the values
of all devices, another call computes and encodes their statistics, and no object is created per series. The encoded
bytes equal those that `TsFileWriter.write_series` or `write_aligned` would write for each device.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import msgspec
import numpy as np

from saros_storage.base.types import ByteArray, Compressor, DataType, Encoding, Int64Array, NumericArray
from saros_storage.encoding import encode_time_rows
from saros_storage.encoding.compression import compress
from saros_storage.tsfile.encoding_selection import encode_by_trial
from saros_storage.tsfile.pages import full_bitmap
from saros_storage.tsfile.series import encode_series_rows
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.device_id import Segments, encode_segments, name_key, segments_of_path
from saros_storage.tsfile.structure.format import (
    ONE_PAGE,
    TIME_MASK,
    VALUE_MASK,
    VECTOR_TYPE,
    Marker,
    i32,
    uvar,
    vstr,
)

_TIME_NAME = ""


class DeviceBatch(msgspec.Struct, frozen=True, eq=False):
    """Rows of devices that have the same series, without nulls or texts; the times of each device rise strictly."""

    devices: Sequence[str]
    #: The position of each device in the order of all devices that are written together.
    places: Int64Array
    aligned: bool
    #: The names of the series, sorted.
    measurements: tuple[str, ...]
    types: tuple[DataType, ...]
    #: A matrix with one row for each device. `values` has such a matrix for each measurement.
    times: Int64Array
    values: tuple[NumericArray, ...]

    def part(self, chosen: Int64Array, rows: slice) -> DeviceBatch:
        """Return the given rows of some of the devices, which are chosen by their indices in the batch."""
        if len(chosen) == len(self.devices) and (rows.start, rows.stop) == (0, self.times.shape[1]):
            return self
        return DeviceBatch(
            [self.devices[index] for index in chosen.tolist()],
            self.places[chosen],
            self.aligned,
            self.measurements,
            self.types,
            self.times[chosen, rows],
            tuple(values[chosen, rows] for values in self.values),
        )


#: The declared encoding and the compressor of each series of a batch.
Stored = tuple[tuple[Encoding, Compressor], ...]


class _Column(NamedTuple):
    """One series that all devices have: for each device, the bytes of its chunk and its encoded statistics.

    `type` is None for times.
    """

    name: str
    type: DataType | None
    mask: int
    chunks: list[bytes]
    statistics: ByteArray


class EncodedDevices:
    """The chunk groups of a batch."""

    def __init__(self, batch: DeviceBatch, columns: list[_Column]) -> None:
        """`columns` are in the order in which their chunks are written."""
        self.batch = batch
        self._columns = columns
        self.segments: list[Segments] = [segments_of_path(device) for device in batch.devices]
        heads = [bytes((Marker.CHUNK_GROUP,)) + encode_segments(segments) for segments in self.segments]
        #: The bytes of each device's chunk group.
        self.groups = [b"".join(parts) for parts in zip(heads, *(c.chunks for c in columns), strict=True)]
        sizes = np.array([list(map(len, parts)) for parts in (heads, *(c.chunks for c in columns))])
        #: For each column, the position of each device's chunk in its group.
        self._starts: Int64Array = np.cumsum(sizes, axis=0)[:-1]

    @property
    def names(self) -> list[str]:
        """The names of the columns in the order of the index; the time column's name is empty."""
        return sorted((column.name for column in self._columns), key=name_key)

    def index_of(self, positions: Int64Array) -> Iterator[bytes]:
        """Yield the TimeseriesMetadata of each device, given the positions of the chunk groups in the file."""
        places = {column.name: place for place, column in enumerate(self._columns)}
        parts: list[ByteArray] = []
        for place in map(places.__getitem__, self.names):
            column = self._columns[place]
            offsets = positions + self._starts[place]
            parts += encode_series_rows(column.mask, vstr(column.name), column.type, column.statistics, offsets)
        whole = np.concatenate(parts, axis=1)
        data, size = whole.tobytes(), whole.shape[1]
        return (data[start : start + size] for start in range(0, len(data), size))


def encode_devices(batch: DeviceBatch, stored: Stored) -> EncodedDevices:
    """Encode a batch; each series becomes a chunk with one page."""
    time_pages, rows = encode_time_rows(batch.times), batch.times.shape[1]
    columns: dict[str, _Column] = {}
    if batch.aligned:
        columns[_TIME_NAME] = _time_column(batch, time_pages, stored[0][1])
        heads = [i32(rows) + full_bitmap(rows)] * len(time_pages)
    else:
        heads = [uvar(len(page)) + page for page in time_pages]
    kinds = list(zip(batch.types, stored, strict=True))
    for type_, (encoding, compressor) in dict.fromkeys(kinds):
        alike = [place for place, kind in enumerate(kinds) if kind == (type_, (encoding, compressor))]
        columns |= _encode_alike(batch, heads, alike, type_, encoding, compressor)
    order = [*columns][: batch.aligned] + list(batch.measurements)
    return EncodedDevices(batch, [columns[name] for name in order])


def _time_column(batch: DeviceBatch, pages: list[bytes], compressor: Compressor) -> _Column:
    ids = bytes((VECTOR_TYPE, compressor, Encoding.TS_2DIFF))
    head = bytes((TIME_MASK | ONE_PAGE,)) + vstr(_TIME_NAME)
    chunks = list(map(_chunk, repeat(head), repeat(ids), pages, [compress(compressor, page) for page in pages]))
    return _Column(_TIME_NAME, None, TIME_MASK, chunks, stats.encode_rows(None, batch.times, batch.times))


def _encode_alike(
    batch: DeviceBatch,
    heads: list[bytes],
    alike: list[int],
    type_: DataType,
    declared: Encoding,
    compressor: Compressor,
) -> dict[str, _Column]:
    """Encode the series at the positions `alike`; all these series have the same type, encoding and compressor.

    `heads` has, for each device, the bytes with which the device's pages begin.
    """
    count, width = len(heads), len(alike)
    names = [batch.measurements[place] for place in alike]
    mask = VALUE_MASK if batch.aligned else 0
    # Row i * width + k belongs to series k of device i.
    values = np.stack([batch.values[place] for place in alike], axis=1).reshape(count * width, -1)
    encodings, pages = encode_by_trial(declared, compressor, type_, values)
    repeated = [head for head in heads for _ in names]
    bodies = [head + page for head, page in zip(repeated, pages, strict=True)]
    packed = [compress(compressor, body) for body in bodies]
    starts = [bytes((mask | ONE_PAGE,)) + vstr(name) for name in names] * count
    ids = {encoding: bytes((type_, compressor, encoding)) for encoding in set(encodings)}
    chunks = list(map(_chunk, starts, map(ids.__getitem__, encodings), bodies, packed))
    statistics = stats.encode_rows(type_, np.repeat(batch.times, width, axis=0), values)
    return {
        name: _Column(name, type_, mask, chunks[place::width], statistics[place::width])
        for place, name in enumerate(names)
    }


def _chunk(head: bytes, ids: bytes, body: bytes, packed: bytes) -> bytes:
    """Return a chunk of one page.

    `head` contains its marker and name; `ids` contains its type, compressor and encoding.
    """
    sizes = uvar(len(body)) + uvar(len(packed))
    return b"".join((head, uvar(len(sizes) + len(packed)), ids, sizes, packed))

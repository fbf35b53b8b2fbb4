"""Decompress the pages of a chunk and decode them into arrays.

    non-aligned page    uvar bytes of times | times (always TS_2DIFF) | values
    time page           times
    value page          i32 rows | bitmap, first row in the highest bit, 1 = present | values that are present

Arrays are allocated for all pages of a call and filled batch by batch. A batch consists of as many pages as fit in the
processor's cache. All pages of a batch are decompressed into one buffer and decoded by one call, because the time that
Python takes per page limits how fast files are read. It also slows down two threads that read at the same time: a
thread that decodes one page per call acquires the interpreter lock every 20 us.

Each page is checked: its number of rows must agree with its statistics and its bitmap, its first and last time must
agree with its statistics, and its times must rise strictly. Pure functions over a mapped file, for any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.base.types import (
    NUMPY_DTYPE,
    BoolArray,
    Compressor,
    DataType,
    Encoding,
    Int64Array,
    NumericArray,
)
from saros_storage.encoding import (
    DecodeError,
    UnsupportedEncoding,
    decode,
    decode_pages_into,
)
from saros_storage.encoding.compression import decompress_pages_into
from saros_storage.kernels.codecs.bit_reader import Stream
from saros_storage.kernels.codecs.points import point_sections
from saros_storage.kernels.merge import rises
from saros_storage.tsfile.chunk import ChunkLayout, PageTable
from saros_storage.tsfile.fused_decode import fused_decoder
from saros_storage.tsfile.shared_timestamps import check_bounds, decode_times
from saros_storage.tsfile.structure.format import READ_BYTES_MAX, READ_ROWS_MAX

#: The number of decompressed bytes of a batch: about the size of a block's values, and of the processor's second-level
#: cache.
_BATCH_BYTES = 1 << 20
_ROWS_PREFIX_BYTES = 4


def read_points(layout: ChunkLayout, data: memoryview, first: int, stop: int) -> tuple[Int64Array, Column, int]:
    """Return times and values of pages [first, stop) of a non-aligned chunk, and the number of decompressed bytes."""
    assert layout.type is not None
    table = layout.table(first, stop)
    rows, size = _checked_size(layout, table)
    found = _fused_points(layout, data, table, rows, size) or _any_points(layout, data, table, rows)
    try:
        times = decode_times(found.times, found.lengths, table.counts, table.firsts, table.lasts)
    except DecodeError as error:
        raise layout.corrupt(str(error)) from error
    return times, found.values, size


def read_times(layout: ChunkLayout, data: memoryview, first: int, stop: int) -> tuple[Int64Array, int]:
    """Return the times of pages [first, stop) of a time chunk, and the number of decompressed bytes."""
    table = layout.table(first, stop)
    rows, size = _checked_size(layout, table)
    times = np.empty(rows, np.int64)
    done = 0
    for batch in _batches(layout, data, table):
        part = times[done : done + batch.table.rows]
        _decode_into(batch, layout.encoding, DataType.INT64, batch.starts, part)
        done += len(part)
    try:
        check_bounds(times, table.counts, table.firsts, table.lasts)
    except DecodeError as error:
        raise layout.corrupt(str(error)) from error
    if not rises(times):
        raise layout.corrupt("the timestamps are not ascending")
    return times, size


def read_column(
    layout: ChunkLayout, type_: DataType, data: memoryview, time: ChunkLayout, first: int, stop: int
) -> tuple[Column, int]:
    """Return the values of pages [first, stop) of a value chunk, and the number of decompressed bytes.

    `time` is the layout of the time chunk to which the value chunk belongs.
    """
    times = time.table(first, stop)
    if not layout.pages:
        return Column.nulls(type_, times.rows), 0
    table = layout.table(first, stop)
    sink = _sink(type_, times.rows)
    rows = times.counts.tolist()
    done = 0
    for batch in _batches(layout, data, table):
        part = rows[done : done + len(batch.starts)]
        bitmaps, starts = _read_bitmaps(batch, part)
        mask = _present(bitmaps, part)
        counts = part if mask is None else _present_counts(mask, part)
        if counts != batch.table.counts.tolist():
            raise batch.corrupt("the number of values differs from the statistics")
        if mask is None:
            sink.add(batch, starts)
        else:
            sink.add_sparse(batch, starts, mask)
        done += len(part)
    return sink.column(), table.size


def _checked_size(layout: ChunkLayout, table: PageTable) -> tuple[int, int]:
    """Return the total row count and the total decompressed size of the pages.

    Raises CorruptFile if they exceed the limits of a read.
    """
    rows, size = table.rows, table.size
    if rows > READ_ROWS_MAX or size > READ_BYTES_MAX:
        raise layout.corrupt(f"{len(table.counts)} pages of {rows} rows and {size} bytes")
    return rows, size


# --- decompression


class Batch(NamedTuple):
    """Some pages of a chunk, decompressed into one buffer: page i is `stream.data[starts[i]:ends[i]]`."""

    layout: ChunkLayout
    table: PageTable
    stream: Stream
    starts: Int64Array
    ends: Int64Array

    @property
    def data(self) -> memoryview:
        """The buffer as a memoryview."""
        return self.stream.data.data

    def corrupt(self, reason: str, page: int = 0) -> CorruptFile:
        """Return the error for damaged contents of page number `page` of this batch."""
        return CorruptFile(self.layout.file, int(self.table.offsets[page]), reason)


def _batches(layout: ChunkLayout, data: memoryview, table: PageTable) -> Iterator[Batch]:
    """Decompress the pages of `table` and yield them, in order, in batches."""
    pages, done = len(table.sizes), 0
    if pages and layout.compressor is Compressor.UNCOMPRESSED:
        base = int(table.offsets[0])
        starts = table.offsets - base
        ends = starts + table.sizes
        yield Batch(layout, table, Stream(np.frombuffer(data[base : base + int(ends[-1])], np.uint8)), starts, ends)
        return
    while done < pages:
        wanted = table.size_ends[done] - table.sizes[done] + _BATCH_BYTES
        upto = (
            pages if table.size_ends[-1] <= wanted else done + 1 + int(np.searchsorted(table.size_ends[done:], wanted))
        )
        part = table if upto - done == pages else PageTable(*[numbers[done:upto] for numbers in table])
        yield _decompress(layout, data, part)
        done = upto


def _decompress(layout: ChunkLayout, data: memoryview, table: PageTable) -> Batch:
    buffer = np.empty(table.size, np.uint8)
    ends = table.size_ends - (table.size_ends[0] - table.sizes[0])
    try:
        decompress_pages_into(layout.compressor, data, table.offsets, table.stored, ends, buffer)
    except DecodeError as error:
        raise CorruptFile(layout.file, int(table.offsets[0]), str(error)) from error
    return Batch(layout, table, Stream(buffer), ends - table.sizes, ends)


# --- pages of a non-aligned chunk


class _Points(NamedTuple):
    """Pages with decoded values: all encoded times, concatenated; their length in each page; and the values."""

    times: bytes
    lengths: Int64Array
    values: Column


def _fused_points(layout: ChunkLayout, data: memoryview, table: PageTable, rows: int, size: int) -> _Points | None:
    """Read the pages by one kernel call. Returns None if no kernel supports them, or if they are damaged.

    If pages are damaged, `_any_points`, which is called next, raises an error that gives the reason.
    """
    read = fused_decoder(layout)
    if read is None or layout.type is None:
        return None
    values: NumericArray = np.empty(rows, NUMPY_DTYPE[layout.type])
    found = read(data, table, size, layout.size_max, values)
    return None if found is None else _Points(found[0].tobytes(), found[1], Column(layout.type, values))


def _any_points(layout: ChunkLayout, data: memoryview, table: PageTable, rows: int) -> _Points:
    """Read the pages batch by batch, for any compressor and encoding."""
    assert layout.type is not None
    sink = _sink(layout.type, rows)
    streams: list[memoryview] = []
    for batch in _batches(layout, data, table):
        begins, values = _sections(batch)
        content = batch.data
        streams += [content[a:b] for a, b in zip(begins.tolist(), values.tolist(), strict=True)]
        sink.add(batch, values)
    return _Points(b"".join(streams), np.array(list(map(len, streams)), np.int64), sink.column())


def _sections(batch: Batch) -> tuple[Int64Array, Int64Array]:
    """Return the positions in the buffer at which each page's times and values start, for a non-aligned chunk."""
    times, values = np.empty_like(batch.starts), np.empty_like(batch.starts)
    found = point_sections(batch.stream.data, batch.starts, batch.ends, times, values)
    if found < len(times):
        raise batch.corrupt("times that do not end in their page", found)
    return times, values


# --- presence of rows


def _read_bitmaps(batch: Batch, rows: list[int]) -> tuple[list[bytes], Int64Array]:
    """Return, for each page, its bitmap and the position in the buffer at which its values start."""
    bitmaps: list[bytes] = []
    starts: list[int] = []
    buffer = batch.data
    for page, (start, end, count) in enumerate(zip(batch.starts.tolist(), batch.ends.tolist(), rows, strict=True)):
        size = (count + 7) // 8
        if start == end:
            bitmaps.append(bytes(size))
            starts.append(end)
            continue
        head = start + _ROWS_PREFIX_BYTES
        if head + size > end or int.from_bytes(buffer[start:head], "big") != count:
            raise batch.corrupt(f"a value page that does not have the {count} rows of its time page", page)
        bitmaps.append(bytes(buffer[head : head + size]))
        starts.append(head + size)
    return bitmaps, np.array(starts, np.int64)


@lru_cache(maxsize=1024)
def full_bitmap(rows: int) -> bytes:
    """Return the bitmap of a page with `rows` rows that all have a value."""
    return np.packbits(np.ones(rows, np.bool_)).tobytes()


def _present(bitmaps: list[bytes], rows: list[int]) -> BoolArray | None:
    """Return a mask that is true for each row with a value, over all pages, or None if all rows have a value."""
    if all(bitmap == full_bitmap(count) for bitmap, count in zip(bitmaps, rows, strict=True)):
        return None
    masks = [np.unpackbits(np.frombuffer(b, np.uint8), count=n) for b, n in zip(bitmaps, rows, strict=True)]
    mask = np.concatenate(masks).view(np.bool_)
    return None if mask.all() else mask


def _present_counts(mask: BoolArray, rows: list[int]) -> list[int]:
    starts = list(accumulate(rows, initial=0))[:-1]
    counts: list[int] = np.add.reduceat(mask, starts, dtype=np.int64).tolist()
    return counts


# --- values


class _Sink(Protocol):
    """Collects the values of successive batches into a column."""

    def add(self, batch: Batch, starts: Int64Array) -> None:
        """Append pages that have no nulls; the values of page i start at `starts[i]`."""
        ...

    def add_sparse(self, batch: Batch, starts: Int64Array, mask: BoolArray) -> None:
        """Append pages with nulls; `mask` is true for each row that has a value."""
        ...

    def column(self) -> Column:
        """Return all appended rows as a column."""
        ...


def _sink(type_: DataType, rows: int) -> _Sink:
    return _TextSink(type_, rows) if type_.is_text else _NumberSink(type_, rows)


class _Mask:
    """A mask of the rows that have a value, allocated when the first null arrives."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.bits: BoolArray | None = None

    def put(self, start: int, part: BoolArray) -> None:
        """Set the mask to `part` from row `start` on. Rows that are never set count as present."""
        if self.bits is None:
            self.bits = np.ones(self._rows, np.bool_)
        self.bits[start : start + len(part)] = part


class _NumberSink:
    """A sink that decodes numbers into one array."""

    def __init__(self, type_: DataType, rows: int) -> None:
        self._type = type_
        self._values: NumericArray = np.empty(rows, NUMPY_DTYPE[type_])
        self._mask = _Mask(rows)
        self._done = 0

    def add(self, batch: Batch, starts: Int64Array) -> None:
        """See `_Sink.add`."""
        part = self._values[self._done : self._done + batch.table.rows]
        _decode_into(batch, batch.layout.encoding, self._type, starts, part)
        self._done += len(part)

    def add_sparse(self, batch: Batch, starts: Int64Array, mask: BoolArray) -> None:
        """See `_Sink.add_sparse`."""
        dense: NumericArray = np.empty(batch.table.rows, self._values.dtype)
        _decode_into(batch, batch.layout.encoding, self._type, starts, dense)
        part = self._values[self._done : self._done + len(mask)]
        part[:] = 0
        part[mask] = dense
        self._mask.put(self._done, mask)
        self._done += len(mask)

    def column(self) -> Column:
        """See `_Sink.column`."""
        return Column(self._type, self._values, self._mask.bits)


class _TextSink:
    """A sink that decodes texts page by page and concatenates them at the end."""

    def __init__(self, type_: DataType, rows: int) -> None:
        self._type = type_
        self._parts: list[TextArray] = []
        self._bytes = 0
        self._mask = _Mask(rows)
        self._done = 0

    def add(self, batch: Batch, starts: Int64Array) -> None:
        """See `_Sink.add`."""
        for page, (start, count) in enumerate(zip(starts.tolist(), batch.table.counts.tolist(), strict=True)):
            if count:
                self._append(batch, _decode_text(batch, self._type, page, start, count))

    def add_sparse(self, batch: Batch, starts: Int64Array, mask: BoolArray) -> None:
        """See `_Sink.add_sparse`."""
        pages = enumerate(zip(starts.tolist(), batch.table.counts.tolist(), strict=True))
        dense = [_decode_text(batch, self._type, page, start, count) for page, (start, count) in pages if count]
        self._mask.put(self._done, mask)
        self._append(batch, _scatter(TextArray.concat(dense), mask))

    def _append(self, batch: Batch, part: TextArray) -> None:
        self._parts.append(part)
        self._done += len(part)
        self._bytes += part.nbytes
        if self._bytes > READ_BYTES_MAX:
            raise batch.corrupt("texts of more than 2 GiB")

    def column(self) -> Column:
        """See `_Sink.column`."""
        values: Values = self._parts[0] if len(self._parts) == 1 else TextArray.concat(self._parts)
        return Column(self._type, values, self._mask.bits)


def _scatter(values: TextArray, mask: BoolArray) -> TextArray:
    """Return a text per element of `mask`: the next text of `values` for a true element, otherwise an empty one."""
    lengths = np.zeros(len(mask), np.int32)
    lengths[mask] = np.diff(values.offsets)
    offsets = np.zeros(len(mask) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return TextArray(offsets, values.data)


def _decode_into(batch: Batch, encoding: Encoding, type_: DataType, starts: Int64Array, out: NumericArray) -> None:
    """Decode the pages that have points into `out`, by one call; the values of page i begin at `starts[i]`."""
    if not len(out):
        return
    ends, counts = batch.ends, batch.table.counts
    if not counts.all():
        some = counts > 0
        starts, ends, counts = starts[some], ends[some], counts[some]
    try:
        decode_pages_into(encoding, type_, batch.stream, starts, ends, counts, out)
    except DecodeError as error:
        raise _refused(batch, error) from error


def _decode_text(batch: Batch, type_: DataType, page: int, start: int, count: int) -> TextArray:
    try:
        values = decode(batch.layout.encoding, type_, batch.data[start : int(batch.ends[page])], count)
    except DecodeError as error:
        raise _refused(batch, error) from error
    assert isinstance(values, TextArray)
    return values


def _refused(batch: Batch, error: DecodeError) -> StorageError:
    if isinstance(error, UnsupportedEncoding):
        return UnsupportedFile(batch.layout.file, str(error))
    return batch.corrupt(str(error))

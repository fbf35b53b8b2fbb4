"""The pages of a chunk, decompressed and decoded into arrays.

    non-aligned page    uvar bytes of times | times (always TS_2DIFF) | values
    time page           times
    value page          i32 rows | bitmap, first row in the highest bit, 1 = present | values that are present

Arrays are made for all pages of a call and filled batch by batch: a batch is as many pages as fit in the processor's
cache, decompressed side by side and decoded by one call. What a page costs in Python bounds how fast files are read,
and how far two threads get at once: one that decodes a page a call asks for the interpreter's lock every 20 us.

All that a page says is checked: rows against statistics and bitmap, first and last time against statistics, times
strictly rising. Pure over a mapped file: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from saros_storage.block import Column, TextArray, Values
from saros_storage.compression import decompress_pages_into
from saros_storage.encoding import DecodeError, UnsupportedEncoding, decode, decode_pages_into
from saros_storage.errors import CorruptFile, StorageError, UnsupportedFile
from saros_storage.kernels.merge import rises
from saros_storage.kernels.words import Stream
from saros_storage.tsfile.chunk import ChunkLayout, PageMeta
from saros_storage.tsfile.format import READ_BYTES_MAX, READ_ROWS_MAX, Cursor
from saros_storage.tsfile.same_times import decode_times
from saros_storage.types import NUMPY_DTYPE, BoolArray, Compressor, DataType, Encoding, Int64Array, NumericArray

#: Decompressed bytes from which a batch is decoded: the pages of a block, about what the second cache holds.
_BATCH_BYTES = 1 << 20
_ROWS_PREFIX_BYTES = 4


def read_points(layout: ChunkLayout, data: memoryview, first: int, stop: int) -> tuple[Int64Array, Column, int]:
    """Times and values of pages [first, stop) of a non-aligned chunk, and the bytes decompressed."""
    assert layout.type is not None
    pages = layout.pages[first:stop]
    sink = _sink(layout.type, _rows(layout, pages))
    streams: list[bytes] = []
    for batch in _batches(layout, data, pages):
        bounds = [_time_bounds(batch, page) for page in range(len(batch.pages))]
        streams += [bytes(batch.data[start:end]) for start, end in bounds]
        sink.add(batch, [end for _, end in bounds], batch.counts)
    try:
        times = decode_times(tuple(streams), tuple(map(_count, pages)))
    except DecodeError as error:
        raise layout.corrupt(str(error)) from error
    _check_bounds(layout, pages, times)
    return times, sink.column(), _size(pages)


def read_times(layout: ChunkLayout, data: memoryview, first: int, stop: int) -> tuple[Int64Array, int]:
    """Times of pages [first, stop) of a time chunk, and the bytes decompressed."""
    pages = layout.pages[first:stop]
    times = np.empty(_rows(layout, pages), np.int64)
    done = 0
    for batch in _batches(layout, data, pages):
        counts = batch.counts
        part = times[done : done + sum(counts)]
        _decode_into(batch, layout.encoding, DataType.INT64, batch.starts, batch.ends, counts, part)
        done += len(part)
    _check_bounds(layout, pages, times)
    if not rises(times):
        raise layout.corrupt("the times do not rise")
    return times, _size(pages)


def read_column(
    layout: ChunkLayout, type_: DataType, data: memoryview, time: ChunkLayout, first: int, stop: int
) -> tuple[Column, int]:
    """Values of pages [first, stop) of a value chunk whose time chunk is `time`, and the bytes decompressed."""
    rows = [_count(page) for page in time.pages[first:stop]]
    if not layout.pages:
        return Column.nulls(type_, sum(rows)), 0
    pages = layout.pages[first:stop]
    sink = _sink(type_, sum(rows))
    done = 0
    for batch in _batches(layout, data, pages):
        part = rows[done : done + len(batch.pages)]
        bitmaps, starts = _read_bitmaps(batch, part)
        mask = _present(bitmaps, part)
        counts = part if mask is None else _present_counts(mask, part)
        if counts != batch.counts:
            raise batch.corrupt("not as many values are present as the statistics say")
        if mask is None:
            sink.add(batch, starts, counts)
        else:
            sink.add_sparse(batch, starts, counts, mask)
        done += len(batch.pages)
    return sink.column(), _size(pages)


def _count(page: PageMeta) -> int:
    return page.statistics.count if page.statistics else 0


def _size(pages: tuple[PageMeta, ...]) -> int:
    return sum(page.size for page in pages)


def _rows(layout: ChunkLayout, pages: tuple[PageMeta, ...]) -> int:
    rows = sum(map(_count, pages))
    if rows > READ_ROWS_MAX or _size(pages) > READ_BYTES_MAX:
        raise layout.corrupt(f"{len(pages)} pages of {rows} rows and {_size(pages)} bytes")
    return rows


# --- decompressing


class Batch(NamedTuple):
    """Some pages of a chunk, decompressed into one buffer: page i is `stream.data[starts[i]:ends[i]]`."""

    layout: ChunkLayout
    pages: tuple[PageMeta, ...]
    stream: Stream
    starts: list[int]
    ends: list[int]

    @property
    def data(self) -> memoryview:
        """The buffer."""
        return self.stream.data.data

    @property
    def counts(self) -> list[int]:
        """Points of each page."""
        return [_count(page) for page in self.pages]

    def corrupt(self, reason: str, page: int = 0) -> CorruptFile:
        """The error for what page i holds."""
        return CorruptFile(self.layout.file, self.pages[page].offset, reason)


def _batches(layout: ChunkLayout, data: memoryview, pages: tuple[PageMeta, ...]) -> Iterator[Batch]:
    """The pages, in order, in batches."""
    if not pages:
        return
    if layout.compressor is Compressor.UNCOMPRESSED:
        base = pages[0].offset
        starts = [page.offset - base for page in pages]
        ends = [start + page.size for start, page in zip(starts, pages, strict=True)]
        stream = Stream(np.frombuffer(data[base : base + ends[-1]], np.uint8))
        yield Batch(layout, pages, stream, starts, ends)
        return
    first = waiting = 0
    for position, page in enumerate(pages, 1):
        waiting += page.size
        if waiting >= _BATCH_BYTES or position == len(pages):
            yield _decompress(layout, data, pages[first:position])
            first, waiting = position, 0


def _decompress(layout: ChunkLayout, data: memoryview, pages: tuple[PageMeta, ...]) -> Batch:
    ends = list(accumulate(page.size for page in pages))
    starts = [end - page.size for end, page in zip(ends, pages, strict=True)]
    buffer = np.empty(ends[-1], np.uint8)
    filled = [(page.offset, page.stored, end) for page, end in zip(pages, ends, strict=True) if page.size]
    if filled:
        offsets, sizes, bounds = np.array(filled, np.int64).T.copy()
        try:
            decompress_pages_into(layout.compressor, data, offsets, sizes, bounds, buffer)
        except DecodeError as error:
            raise CorruptFile(layout.file, pages[0].offset, str(error)) from error
    return Batch(layout, pages, Stream(buffer), starts, ends)


# --- times


def _time_bounds(batch: Batch, page: int) -> tuple[int, int]:
    """Where the times of page i of a non-aligned chunk start and end."""
    end = batch.ends[page]
    cursor = Cursor(batch.layout.file, batch.data, pos=batch.starts[page])
    try:
        size = cursor.uvar()
    except CorruptFile as error:
        raise batch.corrupt(error.reason, page) from None
    if cursor.pos + size > end:
        raise batch.corrupt(f"times of {size} bytes", page)
    return cursor.pos, cursor.pos + size


def _check_bounds(layout: ChunkLayout, pages: tuple[PageMeta, ...], times: Int64Array) -> None:
    lengths = np.array([_count(page) for page in pages], np.int64)
    last = np.cumsum(lengths) - 1
    known = [page.statistics for page in pages if page.statistics]
    heads, tails = times[last - lengths + 1].tolist(), times[last].tolist()
    if heads != [s.start for s in known] or tails != [s.end for s in known]:
        raise layout.corrupt("the times are not those that the statistics say")


# --- which rows are present


def _read_bitmaps(batch: Batch, rows: list[int]) -> tuple[list[bytes], list[int]]:
    """Bitmap of each page, and where its values start."""
    bitmaps: list[bytes] = []
    starts: list[int] = []
    buffer = batch.data
    for page, (start, end, count) in enumerate(zip(batch.starts, batch.ends, rows, strict=True)):
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
    return bitmaps, starts


@lru_cache(maxsize=1024)
def full_bitmap(rows: int) -> bytes:
    """The bitmap of `rows` rows that are all present."""
    return np.packbits(np.ones(rows, np.bool_)).tobytes()


def _present(bitmaps: list[bytes], rows: list[int]) -> BoolArray | None:
    """The mask of all pages' rows, or None if all are present."""
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
    """Takes the values of batch after batch, and is a column in the end."""

    def add(self, batch: Batch, starts: list[int], counts: list[int]) -> None:
        """Append pages without nulls; the values of page i start at `starts[i]`."""
        ...

    def add_sparse(self, batch: Batch, starts: list[int], counts: list[int], mask: BoolArray) -> None:
        """Append pages whose rows are present where `mask` says, `counts` of each page."""
        ...

    def column(self) -> Column:
        """All that was added."""
        ...


def _sink(type_: DataType, rows: int) -> _Sink:
    return _TextSink(type_, rows) if type_.is_text else _NumberSink(type_, rows)


class _Mask:
    """Which rows are present; made when the first null comes."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.bits: BoolArray | None = None

    def put(self, start: int, part: BoolArray) -> None:
        """Rows from `start` on are present as `part` says; others stay present."""
        if self.bits is None:
            self.bits = np.ones(self._rows, np.bool_)
        self.bits[start : start + len(part)] = part


class _NumberSink:
    """Decodes into one array."""

    def __init__(self, type_: DataType, rows: int) -> None:
        self._type = type_
        self._values: NumericArray = np.empty(rows, NUMPY_DTYPE[type_])
        self._mask = _Mask(rows)
        self._done = 0

    def add(self, batch: Batch, starts: list[int], counts: list[int]) -> None:
        """See `_Sink.add`."""
        part = self._values[self._done : self._done + sum(counts)]
        _decode_into(batch, batch.layout.encoding, self._type, starts, batch.ends, counts, part)
        self._done += len(part)

    def add_sparse(self, batch: Batch, starts: list[int], counts: list[int], mask: BoolArray) -> None:
        """See `_Sink.add_sparse`."""
        dense: NumericArray = np.empty(sum(counts), self._values.dtype)
        _decode_into(batch, batch.layout.encoding, self._type, starts, batch.ends, counts, dense)
        part = self._values[self._done : self._done + len(mask)]
        part[:] = 0
        part[mask] = dense
        self._mask.put(self._done, mask)
        self._done += len(mask)

    def column(self) -> Column:
        """See `_Sink.column`."""
        return Column(self._type, self._values, self._mask.bits)


class _TextSink:
    """Decodes page by page, and joins in the end."""

    def __init__(self, type_: DataType, rows: int) -> None:
        self._type = type_
        self._parts: list[TextArray] = []
        self._bytes = 0
        self._mask = _Mask(rows)
        self._done = 0

    def add(self, batch: Batch, starts: list[int], counts: list[int]) -> None:
        """See `_Sink.add`."""
        for page, (start, count) in enumerate(zip(starts, counts, strict=True)):
            if count:
                self._append(batch, _decode_text(batch, self._type, page, start, count))

    def add_sparse(self, batch: Batch, starts: list[int], counts: list[int], mask: BoolArray) -> None:
        """See `_Sink.add_sparse`."""
        pages = enumerate(zip(starts, counts, strict=True))
        dense = [_decode_text(batch, self._type, page, start, count) for page, (start, count) in pages if count]
        self._mask.put(self._done, mask)
        self._append(batch, _spread(TextArray.concat(dense), mask))

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


def _spread(values: TextArray, mask: BoolArray) -> TextArray:
    """Put the values of the present rows into their places; the others are empty."""
    lengths = np.zeros(len(mask), np.int32)
    lengths[mask] = np.diff(values.offsets)
    offsets = np.zeros(len(mask) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return TextArray(offsets, values.data)


def _decode_into(
    batch: Batch,
    encoding: Encoding,
    type_: DataType,
    starts: list[int],
    ends: list[int],
    counts: list[int],
    out: NumericArray,
) -> None:
    """Decode the pages that have points into `out`, all in one call."""
    if not len(out):
        return
    table = np.array((starts, ends, counts), np.int64)
    if 0 in counts:
        table = np.ascontiguousarray(table[:, table[2] > 0])
    try:
        decode_pages_into(encoding, type_, batch.stream, table[0], table[1], table[2], out)
    except DecodeError as error:
        raise _refused(batch, error) from error


def _decode_text(batch: Batch, type_: DataType, page: int, start: int, count: int) -> TextArray:
    try:
        values = decode(batch.layout.encoding, type_, batch.data[start : batch.ends[page]], count)
    except DecodeError as error:
        raise _refused(batch, error) from error
    assert isinstance(values, TextArray)
    return values


def _refused(batch: Batch, error: DecodeError) -> StorageError:
    if isinstance(error, UnsupportedEncoding):
        return UnsupportedFile(batch.layout.file, str(error))
    return batch.corrupt(str(error))

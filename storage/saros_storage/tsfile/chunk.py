"""One chunk: its header and the headers of its pages.

    u8 marker | vstr name | uvar bytes | u8 type | u8 compressor | u8 encoding | page*
    page:  uvar size | uvar stored size | [statistics, if there are several pages] | stored bytes        size 0: no more

    non-aligned page    uvar bytes of times | times (always TS_2DIFF) | values
    time page           times
    value page          i32 rows | bitmap, first row in the highest bit, 1 = present | values that are present

This module parses the headers; the module `pages` decodes the contents of pages.

Pure functions over a mapped file, for any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.types import Compressor, DataType, Encoding, Int64Array, NumericArray
from saros_storage.scan.reading import Statistics
from saros_storage.scan.tsfile_access import ChunkMeta, PageSpan
from saros_storage.tsfile.series import decode_type
from saros_storage.tsfile.structure import statistics as stats
from saros_storage.tsfile.structure.device_id import canonical_measurement
from saros_storage.tsfile.structure.format import (
    MANY_PAGES,
    ONE_PAGE,
    PAGE_BYTES_MAX,
    PAGE_ROWS_MAX,
    PAGES_MASK,
    VALUE_MASK,
    Cursor,
)
from saros_storage.tsfile.structure.statistics import StoredStatistics

#: For each algorithm, the maximum number of decompressed bytes that it can produce per stored byte. Pages of algorithms
#: that are not listed here are limited only by `PAGE_BYTES_MAX`.
_GROWTH_MAX = {Compressor.UNCOMPRESSED: 1, Compressor.SNAPPY: 64, Compressor.LZ4: 256, Compressor.GZIP: 1_100}
#: The ratio of decompressed to stored bytes is not checked for pages of at most this decompressed size.
_GROWTH_FREE_BYTES = 1 << 16


class PageMeta(NamedTuple):
    """A page: the offset of its bytes, their number (`stored`), and the decompressed `size` (0: only nulls)."""

    offset: int
    stored: int
    size: int
    statistics: Statistics | None


class PageTable(NamedTuple):
    """Consecutive pages as arrays for kernels: the fields of `PageMeta`, and each page's count, first and last time.

    The count and the times of a page without statistics are 0.
    """

    offsets: Int64Array
    stored: Int64Array
    sizes: Int64Array
    counts: Int64Array
    firsts: Int64Array
    lasts: Int64Array
    #: For each page, the total size and the total count of all pages from the chunk's first page through this one.
    size_ends: Int64Array
    count_ends: Int64Array

    @property
    def size(self) -> int:
        """Decompressed bytes of all pages."""
        return int(self.size_ends[-1] - self.size_ends[0] + self.sizes[0]) if len(self.sizes) else 0

    @property
    def rows(self) -> int:
        """Rows of all pages."""
        return int(self.count_ends[-1] - self.count_ends[0] + self.counts[0]) if len(self.counts) else 0


#: The fields `counts`, `firsts` and `lasts` of `PageTable`.
_SHAPE = slice(PageTable._fields.index("counts"), PageTable._fields.index("lasts") + 1)


def _table(pages: Sequence[PageMeta]) -> NumericArray:
    rows = len(PageTable._fields)
    table = np.zeros((rows, len(pages)), np.int64)
    numbers = [(*p[:3], s.count, s.start, s.end) if (s := p.statistics) else (*p[:3], 0, 0, 0) for p in pages]
    if numbers:
        table[: rows - 2] = np.array(numbers, np.int64).T
        np.cumsum(table[2:4], axis=1, out=table[rows - 2 :])
    return table


class ChunkLayout(msgspec.Struct, frozen=True):
    """The headers of a chunk and of its pages. `type` is None for a time chunk; a chunk without points has no pages."""

    file: str
    offset: int
    measurement: str
    type: DataType | None
    encoding: Encoding
    compressor: Compressor
    pages: tuple[PageMeta, ...]
    #: A matrix that has a row for each field of `PageTable` and a column for each page.
    numbers: NumericArray
    #: The number of decompressed bytes of the largest page.
    size_max: int
    #: True if each page has its own statistics. Otherwise the chunk has at most one page, with the chunk's statistics.
    many: bool
    #: Byte range [start, end) of the pages in the file, including the pages' headers.
    start: int
    end: int
    #: The pages as `PageSpan`s if the series is non-aligned; empty for columns of an aligned device.
    spans: tuple[PageSpan, ...]

    def table(self, first: int, stop: int) -> PageTable:
        """Return pages [first, stop) as a table."""
        return PageTable(*self.numbers[:, first:stop])

    def same_pages(self, other: ChunkLayout) -> bool:
        """Return whether the pages have the same counts, first times and last times as the pages of `other`."""
        return np.array_equal(self.numbers[_SHAPE], other.numbers[_SHAPE])

    def corrupt(self, reason: str) -> CorruptFile:
        """Return the error for a malformed chunk."""
        return CorruptFile(self.file, self.offset, reason)


class RawChunk(msgspec.Struct, frozen=True):
    """A chunk that can be copied into another file without decoding: header fields, encoded pages, statistics."""

    type: DataType | None
    encoding: Encoding
    compressor: Compressor
    #: True if each page has its own statistics.
    many: bool
    body: memoryview
    statistics: StoredStatistics


def read_layout(file: str, data: memoryview, data_end: int, chunk: ChunkMeta) -> ChunkLayout:
    """Read the headers of a chunk and of its pages. Raises CorruptFile, UnsupportedFile."""
    cursor = Cursor(file, data[chunk.offset : data_end], chunk.offset)
    marker = cursor.u8()
    if marker & PAGES_MASK not in (MANY_PAGES, ONE_PAGE):
        raise cursor.corrupt(f"marker {marker} does not start a chunk")
    name = canonical_measurement(cursor.name())
    size = cursor.uvar()
    type_ = decode_type(cursor)
    compressor, encoding = _compressor(cursor), _encoding(cursor)
    if size > cursor.rest:
        raise cursor.corrupt(f"a chunk of {size} bytes")
    start, end = cursor.pos, cursor.pos + size
    many = marker & PAGES_MASK == MANY_PAGES
    pages: list[PageMeta] = []
    while cursor.pos < end:
        if pages and not many:
            raise cursor.corrupt("a second page in a chunk of one page")
        pages.append(_read_page(cursor, end, type_, compressor, None if many else chunk, empty=marker & VALUE_MASK))
    count = sum(p.statistics.count for p in pages if p.statistics)
    if count != (chunk.statistics.count if chunk.statistics else 0):
        raise cursor.corrupt(f"the pages hold {count} points, but the index has another count")
    start, end = cursor.base + start, cursor.base + end
    spans = () if type_ is None or marker & VALUE_MASK else tuple(_spans(pages))
    numbers = _table(pages)
    largest = max([page.size for page in pages], default=0)
    return ChunkLayout(
        file, chunk.offset, name, type_, encoding, compressor, tuple(pages), numbers, largest, many, start, end, spans
    )


def _spans(pages: list[PageMeta]) -> Iterator[PageSpan]:
    return (PageSpan(s.start, s.end, s.count, (s,)) for s in (page.statistics for page in pages) if s)


def _compressor(cursor: Cursor) -> Compressor:
    number = cursor.u8()
    try:
        return Compressor(number)
    except ValueError:
        raise UnsupportedFile(cursor.file, f"compressor {number}") from None


def _encoding(cursor: Cursor) -> Encoding:
    number = cursor.u8()
    try:
        return Encoding(number)
    except ValueError:
        raise UnsupportedFile(cursor.file, f"encoding {number}") from None


def _read_page(
    cursor: Cursor, end: int, type_: DataType | None, compressor: Compressor, alone: ChunkMeta | None, *, empty: int
) -> PageMeta:
    """Read the page header at the cursor and move the cursor past the page.

    `alone` is the chunk's index entry if the chunk has only this page, otherwise None. A value of `empty` other than 0
    allows the page to have no points.
    """
    size = cursor.uvar()
    if size == 0:
        if not empty:
            raise cursor.corrupt("an empty page")
        return PageMeta(cursor.offset, 0, 0, None)
    stored = cursor.uvar()
    statistics = alone.statistics if alone else stats.reader_statistics(type_, stats.decode(type_, cursor))
    if cursor.pos + stored > end:
        raise cursor.corrupt(f"a page of {stored} bytes")
    if size > PAGE_BYTES_MAX or size > max(stored * _GROWTH_MAX.get(compressor, PAGE_BYTES_MAX), _GROWTH_FREE_BYTES):
        raise cursor.corrupt(f"a page of {stored} bytes whose decompressed size is {size} bytes")
    if not empty and statistics is None:
        raise cursor.corrupt("a page without rows")
    if statistics and statistics.count > PAGE_ROWS_MAX:
        raise cursor.corrupt(f"a page of {statistics.count} rows")
    page = PageMeta(cursor.offset, stored, size, statistics)
    cursor.pos += stored
    return page

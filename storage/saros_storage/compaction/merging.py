"""One merge job: merge the chosen files into one file, or a few.

    per device, and per series unless it is aligned:

    rank 1   |--- chunk ---|   |--- chunk ---|              |- few rows -|
    rank 2                            |--- chunk ---|
    out      copied            decoded, merged, written     decoded, written with its neighbours

The job reads the sources and the tombstones, and no other files, through the series reader. A query therefore finds the
same rows in the merged file as in the sources. A chunk is copied without decoding if nothing overlaps it, no tombstone
affects it, it is (almost) not expired and it is large enough. Since damage in a source would be copied too, every
source is first verified against its checksum.

Two sources may have different types for a series if its type was changed. All values are then written with the type to
which the other types can be converted (`type_conversion`), and chunks of other types are not copied. Two sources may
store a device in incompatible ways (aligned and not aligned, or with types of which neither can be converted to the
other) if it was dropped and created again. Series that tombstones hide entirely are left out here. If incompatible
forms remain, the files cannot be merged: `Unmergeable`.

In memory, a job holds a run of pages of each source (all columns of an aligned device, otherwise one column), the rows
of the chunk being gathered, and the index of the file being written. Belongs to one thread.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from saros_storage.base.block import Block, Column
from saros_storage.base.errors import CorruptFile, StorageError
from saros_storage.base.types import DataType
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.folder.lazy_file import LazyFile
from saros_storage.io.disk import Disk, File
from saros_storage.partition.flush_files import Storing
from saros_storage.read.deletions import deleted_times, relevant
from saros_storage.read.reader_sources import FilePieces, Piece
from saros_storage.read.series_reader import LocalSeriesReader
from saros_storage.scan.reading import BLOCK_ROWS_MAX, ScanRequest, TimeRange
from saros_storage.scan.snapshot import FileSource, PartitionSnapshot, Tombstone
from saros_storage.scan.tsfile_access import DeviceIndex
from saros_storage.scan.type_conversion import reads_as
from saros_storage.tsfile.chunk import RawChunk
from saros_storage.tsfile.structure.statistics import StoredStatistics
from saros_storage.tsfile.writer import AlignedColumn, TsFileSummary, TsFileWriter

#: A chunk is written once it has this many pages or this many bytes in memory.
_CHUNK_PAGES = 10
_CHUNK_BYTES = 32 << 20
#: A chunk may be copied, with its expired points, if at most 1/8 of its time span is expired. A file with a much larger
#: expired part is rewritten: see `garbage_estimate`.
_EXPIRED_PARTS = 8
#: Maximum memory for the pages that are loaded at a time, unless a single page is larger.
_LOADED_BYTES = 64 << 20
#: Bytes of memory for a value and its byte in the mask.
_VALUE_BYTES = 9
#: Bytes per sync: one sync of a whole large file could not be interrupted, and would delay syncs of the log.
_SYNCED_BYTES = 8 << 20
#: Bytes per step of computing a checksum; a job can be cancelled between steps.
_VERIFIED_BYTES = 1 << 20

#: Called often with the number of bytes read or written since the last call; may block, or raise to end the job.
Checkpoint = Callable[[int], None]
#: Returns the path for the next temporary file.
NewPath = Callable[[], str]
#: (device) -> the earliest time that is not expired, or None if nothing expires.
ExpiredBefore = Callable[[str], int | None]


class Unmergeable(StorageError):
    """`file` stores a device in a form that cannot be combined with the form in the other files."""

    def __init__(self, file: str, device: str) -> None:
        super().__init__(f"{file} holds {device} with other types or another alignment than other files")
        self.file = file


class MergedFile(msgspec.Struct, frozen=True):
    """A finished, durable file with a temporary name."""

    path: str
    summary: TsFileSummary


class MergeCounters(msgspec.Struct):
    """The work done by a job."""

    points_copied: int = 0
    points_merged: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


class MergeOptions(msgspec.Struct, frozen=True):
    """Options for writing. Once a file has `split_bytes` bytes, the next device starts a new file; 0 means never."""

    #: A chunk that would not fill a page is decoded, so that it is written together with its neighbours.
    page_rows: int
    split_bytes: int = 0


class Merge:
    """One merge job; used once."""

    def __init__(
        self,
        disk: Disk,
        files: Sequence[FileSource],
        tombstones: tuple[Tombstone, ...],
        storing: Storing,
        options: MergeOptions,
        new_path: NewPath,
        checkpoint: Checkpoint,
        expired_before: ExpiredBefore = lambda _: None,
    ) -> None:
        """Create a job that merges `files`, which are in order of rank.

        Points that are expired according to `expired_before` are left out, except for a small part.
        """
        self._disk = disk
        self._files = files
        self._tombstones = tombstones
        self._storing = storing
        self._options = options
        self._new_path = new_path
        self._checkpoint = checkpoint
        self._expired_before = expired_before
        self._cache = ChunkCache(0)
        self._finished: list[MergedFile] = []
        #: The file being written.
        self._open: tuple[str, File, TsFileWriter] | None = None
        #: How many bytes of the open file were reported to `checkpoint`, and how many of them are durable.
        self._reported = self._synced = 0
        self.counters = MergeCounters()

    def verify(self, checksums: Sequence[int]) -> None:
        """Verify the sources against their checksums in the manifest. Raises CorruptFile."""
        for file, expected in zip(self._files, checksums, strict=True):
            try:
                data = self._disk.map(file.path)
                _opened(file).open()  # opened so that views can read the file after its removal
            except OSError as error:
                raise CorruptFile(file.path, 0, f"the file cannot be read: {error}") from error
            found = 0
            for start in range(0, len(data), _VERIFIED_BYTES):
                part = data[start : start + _VERIFIED_BYTES]
                found = zlib.crc32(part, found)
                self.counters.bytes_read += len(part)
                self._checkpoint(len(part))
            if found != expected:
                raise CorruptFile(file.path, 0, f"the checksum is {found:08x}, not {expected:08x} as written")

    def run(self) -> list[MergedFile]:
        """Write the merged files and return them; there are none if no rows remain.

        On an exception, remove all files.
        """
        try:
            for device in sorted({device for file in self._files for device in file.devices}):
                self._merge_device(device)
                if self._open is not None and 0 < self._options.split_bytes <= self._open[2].position:
                    self._finish()
            if self._open is not None:
                self._finish()
        except BaseException:
            self.remove()
            raise
        return self._finished

    def remove(self) -> None:
        """Remove the written files, as far as possible."""
        if self._open is not None:
            path, file, _ = self._open
            self._open = None
            file.close()
            self._disk.remove(path)
        for merged in self._finished:
            self._disk.remove(merged.path)

    # ------------------------------------------------------------------ devices

    def _merge_device(self, device: str) -> None:
        sources: list[tuple[FileSource, DeviceIndex, dict[str, DataType]]] = []
        for file in self._files:
            index = file.access.device(device) if device in file.devices else None
            columns = {} if index is None else self._columns_left(file, index)
            if index is not None and columns:
                sources.append((file, index, columns))
        if not sources:
            return
        types: dict[str, DataType] = {}
        for file, index, columns in sources:
            if index.aligned != sources[0][1].aligned:
                raise Unmergeable(file.path, device)
            for name, type_ in columns.items():
                known = types.get(name, type_)
                if reads_as(known, type_):
                    types[name] = type_
                elif not reads_as(type_, known):
                    raise Unmergeable(file.path, device)
        aligned = sources[0][1].aligned
        files = tuple(file for file, _, _ in sources)
        names = tuple(sorted(types))
        limit = self._expired_before(device)
        time = TimeRange() if limit is None else TimeRange(limit)
        for part in [names] if aligned else [(name,) for name in names]:
            request = ScanRequest(device, part, tuple(types[name] for name in part), aligned, time)
            self._merge_series(request, files)

    def _columns_left(self, file: FileSource, index: DeviceIndex) -> dict[str, DataType]:
        """Return the types of those columns that tombstones do not hide entirely."""
        near = relevant(self._tombstones, index.device, tuple(index.series), TimeRange()) if self._tombstones else ()
        found = {}
        for name, series in index.series.items():
            known = series.statistics
            if known is None:
                continue
            deleted = deleted_times(near, index.device, name, file.rank)
            if deleted is None or not deleted.cover(known.start, known.end):
                found[name] = series.type
        return found

    def _merge_series(self, request: ScanRequest, files: tuple[FileSource, ...]) -> None:
        loaded_rows = _LOADED_BYTES // (_VALUE_BYTES * len(request.measurements) * len(files))
        reader = LocalSeriesReader(request, (), self._cache, min(loaded_rows, BLOCK_ROWS_MAX))
        gathered = _Gathered(request, self._options.page_rows)
        copies = _Copies(request.device)
        for cluster in reader.clusters(PartitionSnapshot("", 0, files, (), self._tombstones)):
            lone = _lone_chunk(cluster, self._options.page_rows)
            if lone is not None and _is_mostly_within(lone, request.time):
                for block in gathered.rest():
                    self._write(request, block)
                self._copy(request, lone, copies)
                continue
            for item in reader.read(cluster):
                assert isinstance(item, Block)
                gathered.add(item)
                for block in gathered.full():
                    self._write(request, block)
                self._checkpoint(0)
        for block in gathered.rest():
            self._write(request, block)

    def _copy(self, request: ScanRequest, chunk: Piece, copies: _Copies) -> None:
        assert isinstance(chunk.source, FilePieces)
        time, columns = copies.chunks(chunk.source, chunk.chunk)
        writer = self._writer()
        if time is not None:
            writer.copy_aligned(request.device, time, columns)
        else:
            ((name, column),) = columns
            writer.copy_series(request.device, name, column)
        self.counters.points_copied += sum(column.statistics.count for _, column in columns)
        self._report_written()

    def _write(self, request: ScanRequest, block: Block) -> None:
        device, writer = request.device, self._writer()
        stored = [self._storing(device, n, t) for n, t in zip(request.measurements, request.types, strict=True)]
        if request.aligned:
            columns = [
                AlignedColumn(name, column.type, encoding, compressor, column)
                for name, column, (encoding, compressor) in zip(
                    request.measurements, block.columns, stored, strict=True
                )
                if column.valid is None or column.valid.any()
            ]
            writer.write_aligned(device, block.times, columns)
        else:
            (name,), (column,), ((encoding, compressor),) = request.measurements, block.columns, stored
            writer.write_series(device, name, column.type, encoding, compressor, block.times, column.values)
        self.counters.points_merged += sum(column.present_count for column in block.columns)
        self._report_written()

    # ------------------------------------------------------------------ the file

    def _writer(self) -> TsFileWriter:
        if self._open is None:
            path = self._new_path()
            file = self._disk.create(path)
            self._open = path, file, TsFileWriter(file, page_rows=self._options.page_rows)
            self._reported = self._synced = 0
        return self._open[2]

    def _report_written(self) -> None:
        """Count and report the bytes written since the last call, and sync from time to time."""
        assert self._open is not None
        _, file, writer = self._open
        size = writer.position - self._reported
        self._reported += size
        if file.size - self._synced >= _SYNCED_BYTES:
            file.sync()
            self._synced = file.size
        self.counters.bytes_written += size
        self._checkpoint(size)

    def _finish(self) -> None:
        assert self._open is not None
        path, file, writer = self._open
        summary = writer.finish()
        self._checkpoint(0)
        file.sync()
        file.close()
        self._open = None
        self._finished.append(MergedFile(path, summary))


def _opened(file: FileSource) -> LazyFile:
    assert isinstance(file.access, LazyFile)
    return file.access


def _lone_chunk(cluster: Sequence[Piece], rows_min: int) -> Piece | None:
    """Return the only chunk of a cluster if it can be copied without decoding, or None."""
    chunk = cluster[0]
    source = chunk.source
    if len(cluster) > 1 or chunk.count < rows_min or not isinstance(source, FilePieces) or source.converts:
        return None
    return None if source.touched(chunk.start, chunk.end) else chunk


def _is_mostly_within(chunk: Piece, time: TimeRange) -> bool:
    """Return whether the expired part of the chunk is small enough to be copied with the rest."""
    return (time.start - chunk.start) * _EXPIRED_PARTS <= chunk.end - chunk.start


class _Copies:
    """The raw chunks of one device, and the statistics that the files store for these chunks."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._stored: dict[str, dict[str, list[StoredStatistics]]] = {}

    def chunks(self, source: FilePieces, number: int) -> tuple[RawChunk | None, list[tuple[str, RawChunk]]]:
        """Return chunk `number` of the time column, if any, and of the columns that are read."""
        reader, index = _opened(source.file).open(), source.index
        stored = self._stored.get(source.file.path)
        if stored is None:
            stored = self._stored[source.file.path] = reader.stored(self._device)
        time = None if index.time is None else reader.raw(index, "", number, stored[""][number])
        return time, [(name, reader.raw(index, name, number, stored[name][number])) for name in source.names]


class _Gathered:
    """Rows gathered until they fill a chunk."""

    def __init__(self, request: ScanRequest, page_rows: int) -> None:
        self._aligned = request.aligned
        self._page_rows = page_rows
        self._blocks: list[Block] = []
        self._rows = self._bytes = 0

    def add(self, block: Block) -> None:
        """Append rows, which must be later than all rows added before."""
        valid = block.columns[0].valid
        if not self._aligned and valid is not None:
            block = block.compress(valid)
            column = block.columns[0]
            block = Block.timed(block.times, (Column(column.type, column.values),))
        if block.rows:
            self._blocks.append(block)
            self._rows += block.rows
            self._bytes += block.nbytes

    def full(self) -> Iterator[Block]:
        """Yield a chunk of whole pages if there are enough rows."""
        if self._rows >= _CHUNK_PAGES * self._page_rows or self._bytes >= _CHUNK_BYTES:
            whole = self._take()
            rows = whole.rows - whole.rows % self._page_rows or whole.rows
            if rows < whole.rows:
                self.add(whole.slice(rows, whole.rows))
            yield whole.slice(0, rows)

    def rest(self) -> Iterator[Block]:
        """Yield all remaining rows."""
        if self._rows:
            yield self._take()

    def _take(self) -> Block:
        whole = Block.concat(self._blocks)
        self._blocks = []
        self._rows = self._bytes = 0
        return whole

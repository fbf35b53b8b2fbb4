"""One LOAD of one file, up to the point where the LOAD can be logged.

    with the current schema:   copy, check, split    without a lock, since a large file takes minutes
    under the store's lock:    are the databases of its devices unchanged? then schema changes and log entry

Each object is used for one LOAD, by one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from saros_storage.base.errors import UnsupportedFile, UserMistake
from saros_storage.folder.resource import devices_of_file
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.loading.content import ForeignDevice, changes_for, content_of, databases_of
from saros_storage.loading.splitting import Chunk, chunks_of, partitions_of, write_chunk
from saros_storage.loading.staging import Staging
from saros_storage.mutation.staged import StagedFile
from saros_storage.schema import Catalogue, CreateSeries, SchemaChange, SchemaTree
from saros_storage.tsfile.reader import TsFileReader
from saros_storage.tsfile.verifier import check_tsfile
from saros_storage.tsfile.writer import TsFileWriter

#: Files next to a TsFile that list its deletions (IoTDB 1 and 2).
_DELETIONS = (".mods", ".mods2")
#: Status code for a LOAD of a file that cannot be read.
_NOT_READABLE = 2051

#: (catalogue, device, names of missing series) -> None; see `LoadOptions.may_create` for the errors.
MayCreate = Callable[[Catalogue, str, Sequence[str]], None]


def may_create_all(_: Catalogue, __: str, ___: Sequence[str]) -> None:
    """Allow all series."""


class LoadOptions(msgspec.Struct, frozen=True):
    """Options of a LOAD.

    A new database is created `level` nodes below root. If `verify` is set, every page is decoded before the LOAD.
    """

    level: int = 1
    verify: bool = True
    #: Called for each device with the names of its missing series; raises UserMistake if they may not be created.
    may_create: MayCreate = may_create_all


class FileLoad:
    """Loads one file: copies, checks and splits it, and determines the schema changes that it needs."""

    def __init__(
        self,
        path: str,
        options: LoadOptions,
        staging: Staging,
        disk: Disk,
        store_options: StoreOptions,
        now_ns: int,
        file_bytes: int | None = None,
    ) -> None:
        """Copy the file and examine the copy.

        Raises UserMistake 2051 if the file cannot be read, UnsupportedFile if the file has a file of deletions next to
        it, OSError if the disk fails.

        Once a staged file has `file_bytes` bytes, it ends after the current chunk, and the next chunk starts another
        file.
        """
        self._path = path
        self._options = options
        self._staging = staging
        self._disk = disk
        self._store_options = store_options
        self._file_bytes = file_bytes
        #: The database of each device when the files were staged.
        self._databases: Mapping[str, str] | None = None
        self.staged: list[StagedFile] = []
        source = self._source()
        self._size = len(source)
        self._name = staging.begin(now_ns)
        try:
            copy, self._crc32 = staging.copy(self._name, source)
            self._reader, self._content = self._inspect(disk.map(copy))
        except BaseException:
            self.cancel()
            raise

    def _source(self) -> memoryview:
        try:
            data = self._disk.map(self._path)
        except OSError as error:
            raise UserMistake(f"{self._path} cannot be read: {error.strerror}", code=_NOT_READABLE) from error
        for suffix in _DELETIONS:
            if self._disk.exists(self._path + suffix):
                raise UnsupportedFile(self._path, f"deletions in a *{suffix} file next to it")
        return data

    def _inspect(self, data: memoryview) -> tuple[TsFileReader, Sequence[ForeignDevice]]:
        """Examine the copy; error messages contain the original file's path."""
        if self._options.verify:
            problems = check_tsfile(self._path, data).problems
            if problems:
                raise problems[0]
        reader = TsFileReader(self._path, data)
        return reader, content_of(reader)

    def stage(self, schema: SchemaTree) -> None:
        """Write the partitions' files, durably. Raises UserMistake, CorruptFile, UnsupportedFile, OSError."""
        databases = databases_of(self._content, schema, self._options.level)
        self._changes(databases, schema)  # refuse an unsuitable file before the work of staging it
        keys = partitions_of(self._reader, self._content, databases, self._store_options.time_partition_interval)
        self._staging.discard(staged.name for staged in self.staged)
        self.staged = []
        if len(keys) == 1 and not self._is_full(self._size):
            ((database, number),) = keys
            devices = devices_of_file(self._reader)
            whole = self._staging.stage_whole(self._name, database, number, devices, self._size, self._crc32)
            self.staged.append(whole)
        else:
            for (database, number), members in keys.items():
                self._split(database, number, members)
        self._databases = databases

    def _is_full(self, size: int) -> bool:
        return self._file_bytes is not None and size >= self._file_bytes

    def _split(self, database: str, number: int, devices: Sequence[ForeignDevice]) -> None:
        """Write one partition's files."""
        interval = self._store_options.time_partition_interval
        chunks = chunks_of(self._reader, devices, number * interval, (number + 1) * interval)
        for first in chunks:
            self._write(database, number, itertools.chain([first], chunks))

    def _write(self, database: str, number: int, chunks: Iterator[Chunk]) -> None:
        """Write chunks to a new file until it is full."""
        place = len(self.staged) + 1
        file = self._disk.create(self._staging.file_path(self._name, place))
        try:
            writer = TsFileWriter(file, page_rows=self._store_options.page_rows)
            for chunk in chunks:
                write_chunk(writer, chunk)
                if self._is_full(writer.position):
                    break
            summary = writer.finish()
            file.sync()
        finally:
            file.close()
        self.staged.append(self._staging.add(self._name, database, number, place, summary))

    def fits(self, schema: SchemaTree) -> bool:
        """Return whether the devices still have the databases for which the files were staged."""
        return self._databases == databases_of(self._content, schema, self._options.level)

    def changes(self, schema: SchemaTree) -> list[SchemaChange]:
        """Return the needed schema changes. Raises UserMistake 507 or 511 for conflicts, and errors of `may_create`."""
        assert self._databases is not None
        return self._changes(self._databases, schema)

    def _changes(self, databases: Mapping[str, str], schema: SchemaTree) -> list[SchemaChange]:
        changes = changes_for(self._content, databases.values(), schema, self._path)
        for change in changes:
            if isinstance(change, CreateSeries):
                self._options.may_create(schema.catalogue, change.device, [s.measurement for s in change.series])
        return changes

    def make_durable(self) -> None:
        """Make the staged files durable; call before the log entry is written."""
        self._staging.make_durable(self._name)

    def cancel(self) -> None:
        """Cancel the load; remove all its files."""
        self._staging.cancel(self._name)

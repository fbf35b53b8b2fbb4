"""Format `tsfile`: Spark's classes for folders of TsFiles.

A job writes its files to `_temporary-<job>` in the target folder and renames them into the folder at the commit. A
reader sees all files of the job or, if the commit was interrupted, some complete files without `_SUCCESS`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from saros_spark.base.errors import SourceError
from saros_spark.base.options import (
    FILES_WRITE,
    FileOptions,
    FileWriteOptions,
    created_file_table,
    file_options,
    file_write_options,
    writable,
)
from saros_spark.base.types import from_spark, keep_options, kept_options, to_spark
from saros_spark.base.worker_errors import plain_errors
from saros_spark.messages import Failed, refuse_failed
from saros_spark.read.tsfiles import Folder, Part, read_part
from saros_spark.write.rows import shape_of, split_rows
from saros_spark.write.tsfile_output import Sealer, Unknown
from saros_storage.base.types import TIME_UNITS

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class FilePartition(InputPartition):
    """The part of a file that one task reads."""

    part: Part


class FileReader(DataSourceReader):
    """Reads TsFiles in batches."""

    def __init__(self, options: FileOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of files, except those that the files' statistics exclude."""
        return [FilePartition(part) for part in Folder(self._options).parts()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        if isinstance(partition, FilePartition):
            with plain_errors():
                yield from read_part(partition.part, self._options, from_spark(self._schema))


@dataclass
class FilesWritten(WriterCommitMessage):
    """The files of one attempt."""

    files: tuple[str, ...]


class FileWriter(DataSourceArrowWriter):
    """Writes TsFiles in batches: one or more files per task."""

    def __init__(self, options: FileWriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._overwrite = overwrite
        self._job = uuid.uuid4().hex
        shape_of(from_spark(schema, void=True), options.rows)
        try:
            self._temporary.mkdir(parents=True)
        except OSError as error:
            raise SourceError(f"cannot make {self._temporary}: {error.strerror}") from error

    @property
    def _temporary(self) -> Path:
        return Path(self._options.path) / f"_temporary-{self._job}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write a task's rows. If any rows cannot be written, the job fails at its commit."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        name = f"part-{context.partitionId():05}-{context.attemptNumber()}-{self._job}"
        options = self._options
        known = Unknown(TIME_UNITS[options.time_unit], aligned=bool(options.rows.aligned))
        sealer = Sealer(known, self._temporary, name, points_max=options.rows.bulk_points)
        try:
            self._add_rows(sealer, iterator)
        except SourceError as error:
            return Failed(str(error))
        return FilesWritten(tuple(sealer.finish()))

    def _add_rows(self, sealer: Sealer, batches: Iterator[pa.RecordBatch]) -> None:
        shape = shape_of(from_spark(self._schema, void=True), self._options.rows)
        row = 0
        for batch in batches:
            for rows in split_rows(batch, shape, row):
                sealer.add(rows)
            row += batch.num_rows

    @plain_errors()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Move the files of the committed attempts into the folder; then remove the files that they replace.

        Raises SourceError if a task failed permanently.
        """
        refuse_failed(messages)
        folder = Path(self._options.path)
        old = list(folder.rglob("*.tsfile")) if self._overwrite else []
        old = [file for file in old if self._temporary not in file.parents]
        for message in messages:
            for file in message.files if isinstance(message, FilesWritten) else ():
                Path(file).replace(folder / Path(file).name)
        for replaced in old:
            replaced.unlink(missing_ok=True)
        (folder / "_SUCCESS").touch()
        self._discard()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - all attempts' files are removed
        """Remove all files of the job. Attempts that are still running then fail, since their folder is gone."""
        self._discard()

    def _discard(self) -> None:
        for file in self._temporary.glob("*"):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # an attempt has just written a file there, which is never used
            self._temporary.rmdir()


class TsFileSource(DataSource):
    """`spark.read.format("tsfile")` and `frame.write.format("tsfile")`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "tsfile"

    @plain_errors()
    def schema(self) -> StructType:
        """Return the schema from the indexes of the files.

        For CREATE TABLE, the schema's metadata has the table's options.
        """
        table = created_file_table(self.options)
        found = to_spark(Folder(file_options(self.options if table is None else table)).schema)
        return found if table is None else keep_options(found, table)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader. `schema` may come from the user. Only the columns that it contains are decoded."""
        return FileReader(file_options(self.options or kept_options(schema)), schema)

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return a writer for mode append, or for mode overwrite, which replaces the folder's TsFiles."""
        given = self.options or writable(kept_options(schema), FILES_WRITE)
        return FileWriter(file_write_options(given), schema, overwrite=overwrite)

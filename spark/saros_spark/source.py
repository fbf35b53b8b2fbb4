"""Format `saros`: Spark's classes for relations and writers.

Filters are not pushed down (`pushFilters` is not defined), because Spark stores pushed filters in an object that all
scans of a DataFrame share, and then returns wrong results (docs/decisions/spark.md). Filters for the server are
options, which are part of the relation.

Spark creates these objects in its own processes, and pickles readers and writers to its tasks. Names of parameters are
part of Spark's interface.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from saros_spark.base.errors import SourceError
from saros_spark.base.options import (
    ScanOptions,
    WriteOptions,
    created_table,
    relation_options,
    scan_options,
    stream_options,
    with_session,
    writable,
    write_options,
)
from saros_spark.base.types import from_spark, keep_options, kept_options, to_spark
from saros_spark.base.worker_errors import plain_errors
from saros_spark.base.worker_gc import collect_garbage
from saros_spark.messages import Failed, TaskPartition, Written, refuse_failed
from saros_spark.read.scanning import Relation, planned, read_task
from saros_spark.write.writing import Attempt, commit, discard, prepare, write_rows

if TYPE_CHECKING:
    import pyarrow as pa


#: The message for a relation without options. Spark passes no options for a table whose options are not in its catalog.
_NO_OPTIONS = (
    "option url is missing: saros://host:6667, or the data folder of a running server. A table of Spark's catalog has"
    " its options only if CREATE TABLE name USING saros OPTIONS (url '...', devices '...') made it, without a list of"
    " columns: drop one made by saveAsTable, and read the points that it wrote with load()"
)


class SarosReader(DataSourceReader):
    """Reads a relation in batches."""

    def __init__(self, options: ScanOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """Return the slices of the relation, which share a read point."""
        return [TaskPartition(task) for task in planned(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice. For a relation without slices Spark passes an empty partition."""
        if isinstance(partition, TaskPartition):
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            with plain_errors():
                yield from read_task(partition.task, self._options, from_spark(self._schema), str(context.stageId()))


class SarosWriter(DataSourceArrowWriter):
    """Writes rows in batches. One object is created for each job, before the job's tasks."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._job = prepare(from_spark(schema, void=True), options, uuid.uuid4().hex, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write a task's rows. If any rows cannot be written, the job fails at its commit."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt = Attempt(self._job.name, context.partitionId(), context.attemptNumber())
        schema = from_spark(self._schema, void=True)
        try:
            return Written(write_rows(iterator, schema, self._options, attempt, self._job))
        except SourceError as error:
            return Failed(str(error))

    @plain_errors()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the job after all tasks. Raises SourceError if a task failed permanently."""
        refuse_failed(messages)
        receipts = [message.receipt for message in messages if isinstance(message, Written)]
        commit(receipts, self._options, self._job)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - all attempts' files are removed
        """Remove the job's files after a failed task or commit. Tablets that were written stay."""
        discard(self._options, self._job)


class SarosSource(DataSource):
    """`spark.read.format("saros")` and `frame.write.format("saros")`."""

    #: The options of the Spark session, which apply to each relation that has no option url.
    session: Mapping[str, str] = {}

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "saros"

    @plain_errors()
    def schema(self) -> StructType:
        """Return the schema from the schema tree. For CREATE TABLE, the schema's metadata has the table's options."""
        table = created_table(self.options)
        given = with_session(self.options if table is None else table, self.session)
        found = to_spark(Relation(relation_options(given)).schema)
        collect_garbage()
        return found if table is None else keep_options(found, table)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader. `schema` may come from the user; then it may have only some of the columns."""
        given = self.options or kept_options(schema)
        if not given:
            raise SourceError(_NO_OPTIONS)
        return SarosReader(scan_options(with_session(given, self.session)), schema)

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return a writer for mode append or mode overwrite. Options describe the data that overwrite replaces."""
        given = with_session(self.options or writable(kept_options(schema)), self.session)
        if not given:
            raise SourceError(_NO_OPTIONS)
        return SarosWriter(write_options(given), schema, overwrite=overwrite)

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's names
        """Return a reader of micro-batches by time."""
        from saros_spark.stream_source import SarosStreamReader

        return SarosStreamReader(stream_options(with_session(self.options, self.session)), schema)

    @plain_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Return a writer of micro-batches, for output mode append."""
        from saros_spark.stream_source import SarosStreamWriter

        options = write_options(with_session(self.options, self.session), streaming=True)
        return SarosStreamWriter(options, schema, overwrite=overwrite)


def source_for(session: Mapping[str, str]) -> type[SarosSource]:
    """Return a source class with a session's options. Spark pickles it by value, because it is not in a module."""
    if not session:
        return SarosSource

    class SessionSource(SarosSource):
        """The source `saros` with the options of a Spark session."""

    SessionSource.session = dict(session)
    return SessionSource

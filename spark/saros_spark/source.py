"""Format `saros`: Spark's classes around relations and writers.

Filters are not pushed down (`pushFilters` is not defined): Spark keeps pushed filters on an object that all scans of a
DataFrame share, and answers wrongly (docs/decisions/spark.md). What the server is to filter stands in options, which
are part of the relation.

Spark makes these objects in processes of its own, and pickles readers and writers to tasks. Names of parameters are
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


#: Said of a relation without any option: Spark calls with none for tables that it has no options of.
_NO_OPTIONS = (
    "option url is missing: saros://host:6667, or the data folder of a running server. A table of Spark's catalog has"
    " its options only if CREATE TABLE name USING saros OPTIONS (url '...', devices '...') made it, without a list of"
    " columns: drop one made by saveAsTable, and read the points that it wrote with load()"
)


class SarosReader(DataSourceReader):
    """Batch reads."""

    def __init__(self, options: ScanOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """Slices, by the statistics of the moment that all of them read at."""
        return [TaskPartition(task) for task in planned(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A slice's rows; Spark asks for one empty partition if there is none."""
        if isinstance(partition, TaskPartition):
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            with plain_errors():
                yield from read_task(partition.task, self._options, from_spark(self._schema), str(context.stageId()))


class SarosWriter(DataSourceArrowWriter):
    """Batch writes. Made once for a job, before its tasks."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._job = prepare(from_spark(schema, void=True), options, uuid.uuid4().hex, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """A task's rows. Those that cannot be written fail the job when it commits."""
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
        """All tasks are done. Raises SourceError if one failed for good."""
        refuse_failed(messages)
        receipts = [message.receipt for message in messages if isinstance(message, Written)]
        commit(receipts, self._options, self._job)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - files of any attempt go
        """A task failed for good, or the commit did: files go. Tablets that were written stay written."""
        discard(self._options, self._job)


class SarosSource(DataSource):
    """`spark.read.format("saros")` and `frame.write.format("saros")`."""

    #: Options of the Spark session, for relations without an option url.
    session: Mapping[str, str] = {}

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "saros"

    @plain_errors()
    def schema(self) -> StructType:
        """From the schema tree; of a table that Spark's catalog is to have, with the table's options."""
        table = created_table(self.options)
        given = with_session(self.options if table is None else table, self.session)
        found = to_spark(Relation(relation_options(given)).schema)
        collect_garbage()
        return found if table is None else keep_options(found, table)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """`schema` may be one that the user gave: a choice of the columns."""
        given = self.options or kept_options(schema)
        if not given:
            raise SourceError(_NO_OPTIONS)
        return SarosReader(scan_options(with_session(given, self.session)), schema)

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Modes append and overwrite; what the latter replaces is in the options."""
        given = with_session(self.options or writable(kept_options(schema)), self.session)
        if not given:
            raise SourceError(_NO_OPTIONS)
        return SarosWriter(write_options(given), schema, overwrite=overwrite)

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark gives the names
        """Micro-batches by time."""
        from saros_spark.stream_source import SarosStreamReader

        return SarosStreamReader(stream_options(with_session(self.options, self.session)), schema)

    @plain_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Output mode append."""
        from saros_spark.stream_source import SarosStreamWriter

        options = write_options(with_session(self.options, self.session), streaming=True)
        return SarosStreamWriter(options, schema, overwrite=overwrite)


def source_for(session: Mapping[str, str]) -> type[SarosSource]:
    """Return the source with a session's options; Spark's processes get it by value, as it is in no module."""
    if not session:
        return SarosSource

    class SessionSource(SarosSource):
        """See `source_for`."""

    SessionSource.session = dict(session)
    return SessionSource

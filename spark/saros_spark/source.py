"""Format `saros`: Spark's classes around relations and writers.

Filters are not pushed down (`pushFilters` is not defined): Spark keeps pushed filters on an object that all scans of a
DataFrame share, and answers wrongly (docs/decisions/spark.md). What the server is to filter stands in options, which
are part of the relation.

Spark makes these objects in processes of its own, and pickles readers and writers to tasks. Names of parameters are
part of Spark's interface.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
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

from saros_spark.base.options import (
    ScanOptions,
    WriteOptions,
    relation_options,
    scan_options,
    stream_options,
    write_options,
)
from saros_spark.base.types import from_spark, to_spark
from saros_spark.base.worker_gc import collect_garbage
from saros_spark.messages import TaskPartition, Written
from saros_spark.read.scanning import Relation, planned, read_task
from saros_spark.write.writing import Attempt, commit, discard, prepare, write_rows

if TYPE_CHECKING:
    import pyarrow as pa


class SarosReader(DataSourceReader):
    """Batch reads."""

    def __init__(self, options: ScanOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Slices, by the statistics of the moment that all of them read at."""
        return [TaskPartition(task) for task in planned(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A slice's rows; Spark asks for one empty partition if there is none."""
        if isinstance(partition, TaskPartition):
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            yield from read_task(partition.task, self._options, from_spark(self._schema), str(context.stageId()))


class SarosWriter(DataSourceArrowWriter):
    """Batch writes. Made once for a job, before its tasks."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        self._schema = schema
        self._job = prepare(from_spark(schema, void=True), options, uuid.uuid4().hex, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """A task's rows."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt = Attempt(self._job.name, context.partitionId(), context.attemptNumber())
        return Written(write_rows(iterator, from_spark(self._schema, void=True), self._options, attempt, self._job))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        receipts = [message.receipt for message in messages if isinstance(message, Written)]
        commit(receipts, self._options, self._job)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - files of any attempt go
        """A task failed for good, or the commit did: files go. Tablets that were written stay written."""
        discard(self._options, self._job)


class SarosSource(DataSource):
    """`spark.read.format("saros")` and `frame.write.format("saros")`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "saros"

    def schema(self) -> StructType:
        """From the schema tree."""
        found = to_spark(Relation(relation_options(self.options)).schema)
        collect_garbage()
        return found

    def reader(self, schema: StructType) -> DataSourceReader:
        """`schema` may be one that the user gave: a choice of the columns."""
        return SarosReader(scan_options(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Modes append and overwrite; what the latter replaces is in the options."""
        return SarosWriter(write_options(self.options), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark gives the names
        """Micro-batches by time."""
        from saros_spark.stream_source import SarosStreamReader

        return SarosStreamReader(stream_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Output mode append."""
        from saros_spark.stream_source import SarosStreamWriter

        return SarosStreamWriter(write_options(self.options, streaming=True), schema, overwrite=overwrite)

"""Structured Streaming of format `saros`: Spark's classes for `streaming` and `writing`.

The reader exists in one process for the duration of its query. The messages that it sends to tasks are pickled. Spark
creates two new writers for every micro-batch. An attempt is therefore identified by the properties of Spark's task:
query, batch, attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from saros_spark.base.errors import SourceError
from saros_spark.base.options import StreamOptions, WriteOptions
from saros_spark.base.types import from_spark
from saros_spark.base.worker_errors import plain_errors
from saros_spark.messages import Failed, TaskPartition, Written, refuse_failed
from saros_spark.read.scanning import read_task
from saros_spark.read.streaming import available, batch_tasks, first_offset, is_written, next_offset, note_written
from saros_spark.write.rows import shape_of
from saros_spark.write.writing import Attempt, Job, Receipt, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

_UNTIL = "until"


class SarosStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a relation as micro-batches by time."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        #: The last offset of a query with trigger availableNow.
        self._newest: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names
        """Return the offset before the first batch of a new query."""
        return {_UNTIL: first_offset(self._options)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of the option maxRowsPerTrigger."""
        rows = self._options.rows_per_trigger
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let this query end with the last row that is available now."""
        newest = available(self._options)
        self._newest = first_offset(self._options) if newest is None else newest

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the offset of the end of the next batch."""
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {_UNTIL: next_offset(self._options, start[_UNTIL], rows_max, self._newest)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the slices of a batch."""
        return [TaskPartition(task) for task in batch_tasks(self._options, start[_UNTIL], end[_UNTIL])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice."""
        if isinstance(partition, TaskPartition):
            with plain_errors():
                yield from read_task(partition.task, self._options.scan, from_spark(self._schema))


class SarosStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches as tablets. With the option `progress`, a committed batch is not written again."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise SourceError(
                "a stream can only be written in output mode append: complete would replace the data of other writers"
            )
        shape_of(from_spark(schema, void=True), options)
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write a task's rows; write nothing if the batch was committed before."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        attempt = Attempt(f"{query}-{batch}", context.partitionId(), context.attemptNumber())
        options = self._options
        if options.progress is not None and is_written(options.connecting, options.progress, batch):
            return Written(Receipt(attempt, 0))
        schema = from_spark(self._schema, void=True)
        try:
            return Written(write_rows(iterator, schema, options, attempt, Job(attempt.job)))
        except SourceError as error:
            return Failed(str(error))

    @plain_errors()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Record the batch as committed if the option `progress` is given.

        Raises SourceError if a task failed permanently.
        """
        refuse_failed(messages)
        options = self._options
        if options.progress is None or is_written(options.connecting, options.progress, batchId):
            return
        rows = sum(message.receipt.rows for message in messages if isinstance(message, Written))
        note_written(options.connecting, options.progress, batchId, rows)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing, because Spark repeats the batch with the same rows."""

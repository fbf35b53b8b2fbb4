"""Format `saros`: Spark's classes around relations and writers.

Filters are not pushed down (`pushFilters` is not defined): Spark keeps pushed filters on an object that all scans of a
DataFrame share, and answers wrongly (docs/decisions/spark.md). What the server is to filter stands in options, which
are part of the relation.

Spark makes these objects in processes of its own, and pickles readers and writers to tasks. Names of parameters are
part of Spark's interface.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from saros_spark.options import ScanOptions, scan_options
from saros_spark.scanning import Relation, Task, read_task
from saros_spark.types import from_spark, to_spark

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskPartition(InputPartition):
    """One task's statement."""

    task: Task


class SarosReader(DataSourceReader):
    """Batch reads."""

    def __init__(self, options: ScanOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Slices, by the statistics of the moment."""
        return [TaskPartition(task) for task in Relation(self._options).tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A slice's rows; Spark asks for one empty partition if there is none."""
        if isinstance(partition, TaskPartition):
            yield from read_task(partition.task, self._options, from_spark(self._schema))


class SarosSource(DataSource):
    """`spark.read.format("saros")`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "saros"

    def schema(self) -> StructType:
        """From the schema tree."""
        return to_spark(Relation(scan_options(self.options)).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """`schema` may be one that the user gave: a choice of the columns."""
        return SarosReader(scan_options(self.options), schema)

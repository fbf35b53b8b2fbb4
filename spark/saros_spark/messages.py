"""What Spark carries between the driver and its tasks: a task to read, the receipt of a task's rows."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition, WriterCommitMessage

from saros_spark.read.scanning import Task
from saros_spark.write.writing import Receipt


@dataclass
class TaskPartition(InputPartition):
    """One task's statement."""

    task: Task


@dataclass
class Written(WriterCommitMessage):
    """One attempt's receipt."""

    receipt: Receipt

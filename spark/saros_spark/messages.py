"""Messages between Spark's driver and its tasks: a task to read, the receipt of a task's rows, or its failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition, WriterCommitMessage

from saros_spark.base.errors import SourceError
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


@dataclass
class Failed(WriterCommitMessage):
    """Rows that no further attempt would write: Spark runs a task that raises again, and knows no error for good."""

    reason: str


def refuse_failed(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Raise SourceError with the first reason of the tasks that failed; return if there are none."""
    reasons = [message.reason for message in messages if isinstance(message, Failed)]
    if reasons:
        more = f"; {len(reasons) - 1} other tasks failed, too" if len(reasons) > 1 else ""
        raise SourceError(f"{reasons[0]}{more}")

"""Messages between Spark's driver and its tasks: a statement to read, and the receipt or failure of a write task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition, WriterCommitMessage

from saros_spark.base.errors import SourceError
from saros_spark.read.scanning import Task
from saros_spark.write.writing import Receipt


@dataclass
class TaskPartition(InputPartition):
    """The statement of one read task."""

    task: Task


@dataclass
class Written(WriterCommitMessage):
    """The receipt of one successful attempt to write."""

    receipt: Receipt


@dataclass
class Failed(WriterCommitMessage):
    """A permanent failure to write.

    It is a message, not an error, because Spark repeats every task that raises an error.
    """

    reason: str


def refuse_failed(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Raise SourceError with the reason of the first failed task, if any task failed."""
    reasons = [message.reason for message in messages if isinstance(message, Failed)]
    if reasons:
        others = len(reasons) - 1
        more = f"; {others} other {'task' if others == 1 else 'tasks'} failed, too" if others else ""
        raise SourceError(f"{reasons[0]}{more}")

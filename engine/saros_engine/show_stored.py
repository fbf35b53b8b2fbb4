"""SHOW PARTITIONS and SHOW FILES: what lies on this node's disk, as rows.

IoTDB has no such statements; columns are named after those of its SHOW REGIONS. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from saros_engine.plan import Field
from saros_engine.show import Row, Shown
from saros_grammar.ast import Show, ShowKind
from saros_storage.partition_status import FileStatus, PartitionStatus
from saros_storage.paths import parse_pattern, split_path
from saros_storage.types import DataType

_TEXT, _INT32, _INT64 = DataType.TEXT, DataType.INT32, DataType.INT64
_PARTITION_FIELDS = (
    Field("Database", _TEXT),
    Field("TimePartition", _INT64),
    Field("StartTime", _TEXT),
    Field("EndTime", _TEXT),
    Field("SeqFiles", _INT32),
    Field("UnseqFiles", _INT32),
    Field("Bytes", _INT64),
    Field("MemTableBytes", _INT64),
    Field("Tombstones", _INT32),
    Field("SetAside", _INT32),
)
_FILE_FIELDS = (
    Field("Database", _TEXT),
    Field("TimePartition", _INT64),
    Field("File", _TEXT),
    Field("Status", _TEXT),
    Field("Version", _INT64),
    Field("Devices", _INT32),
    Field("StartTime", _TEXT),
    Field("EndTime", _TEXT),
    Field("Bytes", _INT64),
    Field("Reason", _TEXT),
)
TimeText = Callable[[int], str]


def show_stored(statement: Show, partitions: Iterable[PartitionStatus], time: TimeText) -> Shown:
    """Rows by database and slice; `time` prints a time."""
    patterns = [parse_pattern(str(path)) for path in statement.databases]
    chosen = [p for p in partitions if not patterns or any(w.matches(split_path(p.database)) for w in patterns)]
    chosen.sort(key=lambda p: (p.database, p.slice))
    if statement.kind is ShowKind.PARTITIONS:
        return Shown(_PARTITION_FIELDS, [_partition_row(partition, time) for partition in chosen])
    return Shown(_FILE_FIELDS, [row for partition in chosen for row in _file_rows(partition, time)])


def _partition_row(partition: PartitionStatus, time: TimeText) -> Row:
    sequence = sum(file.sequence for file in partition.files)
    return (
        partition.database,
        partition.slice,
        time(partition.start),
        time(partition.end),
        sequence,
        len(partition.files) - sequence,
        partition.bytes,
        partition.memtable_bytes,
        partition.tombstones,
        len(partition.set_aside),
    )


def _file_rows(partition: PartitionStatus, time: TimeText) -> Iterable[Row]:
    place = (partition.database, partition.slice)
    for file in partition.files:
        span = (time(file.start), time(file.end))
        yield (*place, file.name, _status(file), file.version, file.devices, *span, file.bytes, None)
    for name, reason in partition.set_aside:
        yield (*place, name, "SetAside", None, None, None, None, None, reason)


def _status(file: FileStatus) -> str:
    if file.staged:
        return "Loading"
    return "Sequence" if file.sequence else "Unsequence"

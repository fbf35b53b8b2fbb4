"""SHOW PARTITIONS, FILES and DISK_USAGE: return rows that describe the data on a node's disk.

IoTDB has only SHOW DISK_USAGE. The columns of the other two are named like columns of IoTDB's SHOW REGIONS. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from saros_cluster.placement.ring import NodeId
from saros_engine.base.errors import SemanticError
from saros_engine.base.row_set import Row
from saros_engine.plan.plan import Field
from saros_grammar.syntax.ast import ShowKind
from saros_storage.base.paths import PathPattern, parse_pattern, split_path
from saros_storage.base.types import DataType
from saros_storage.partition.partition_status import FileStatus, PartitionStatus

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
    Field("Reason", _TEXT),
    Field("DataNodeId", _INT32),
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
    Field("DataNodeId", _INT32),
)
_USAGE_FIELDS = (
    Field("Database", _TEXT),
    Field("DataNodeId", _INT32),
    Field("RegionId", _INT32),
    Field("TimePartition", _INT64),
    Field("SizeInBytes", _INT64),
)
FIELDS = {
    ShowKind.PARTITIONS: _PARTITION_FIELDS,
    ShowKind.FILES: _FILE_FIELDS,
    ShowKind.DISK_USAGE: _USAGE_FIELDS,
}
TimeText = Callable[[int], str]


def show_stored(
    kind: ShowKind, databases: Sequence[str], partitions: Iterable[PartitionStatus], time: TimeText, node: NodeId
) -> list[Row]:
    """Return a node's rows for `FIELDS`, sorted by database and slice.

    `databases` are patterns; if there are none, all databases are shown. `time` formats a time.
    """
    patterns = [parse_pattern(database) for database in databases]
    takes = PathPattern.covers if kind is ShowKind.DISK_USAGE else PathPattern.matches
    chosen = [p for p in partitions if not patterns or any(takes(w, split_path(p.database)) for w in patterns)]
    chosen.sort(key=lambda p: (p.database, p.slice))
    if kind is ShowKind.DISK_USAGE:
        return [(p.database, node, p.region, p.slice, p.bytes) for p in chosen]
    if kind is ShowKind.PARTITIONS:
        return [_partition_row(partition, time, node) for partition in chosen]
    return [row for partition in chosen for row in _file_rows(partition, time, node)]


def check_whole(pattern: str, databases: Iterable[str]) -> None:
    """Raise SemanticError for a pattern of DISK_USAGE that matches only a part of a database."""
    wanted = parse_pattern(pattern)
    for database in databases:
        nodes = split_path(database)
        if wanted.reaches(nodes) and not wanted.covers(nodes):
            raise SemanticError(
                f"{pattern} is only a part of {database}: sizes are known for whole databases; use {database}.**"
            )


def silent_row(kind: ShowKind, node: NodeId, why: str) -> Row:
    """Return the row of a node that does not answer."""
    told: dict[str, int | str] = {"Status": "Unknown", "Reason": why, "DataNodeId": node}
    return tuple(told.get(field.name) for field in FIELDS[kind])


def _partition_row(partition: PartitionStatus, time: TimeText, node: NodeId) -> Row:
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
        None,
        node,
    )


def _file_rows(partition: PartitionStatus, time: TimeText, node: NodeId) -> Iterable[Row]:
    place = (partition.database, partition.slice)
    for file in partition.files:
        span = (time(file.start), time(file.end))
        yield (*place, file.name, _status(file), file.version, file.devices, *span, file.bytes, None, node)
    for name, reason in partition.set_aside:
        yield (*place, name, "SetAside", None, None, None, None, None, reason, node)


def _status(file: FileStatus) -> str:
    if file.staged:
        return "Loading"
    return "Sequence" if file.sequence else "Unsequence"

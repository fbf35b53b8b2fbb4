"""The engine's interface to the database below it: the store of one node, or a whole cluster.

    read_point(consistency) -> ReadPoint   created for a statement
    catch_up(point, scope)                 called before the statement uses the schema or data that the scope names
    schema, view(point)                    the state that the statement then reads
    write, change_schema, delete ...       return when the change is as durable as configured; `request` is the client's
                                           request that causes the change

Implemented by `saros_storage.store.Store` and `saros_cluster.database.database.ClusterDatabase`. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from saros_storage.base.tablet import MultiTablet, Tablet
from saros_storage.base.write_request import WriteRequest
from saros_storage.checkpoint.checkpoint_set import CheckpointSet
from saros_storage.checkpoint.registry import CheckpointRegistry
from saros_storage.compaction.compactor import CompactionCounters
from saros_storage.folder.store_options import StoreOptions
from saros_storage.loading.loader import LoadOptions
from saros_storage.partition.partition_status import PartitionStatus
from saros_storage.read.latest_cache import LatestCache
from saros_storage.region import StoreStatus
from saros_storage.scan.read_point import ReadHorizon, ReadPoint, ReadScope, Sources
from saros_storage.scan.reading import ReadView, TimeRange
from saros_storage.schema import SchemaChange, SchemaTree

#: Consistency levels of reads: see `catch_up`.
CONSISTENCIES = ("strong", "mid", "weak")


class PendingWrite(Protocol):
    """A write in progress."""

    def wait(self, seconds: float) -> bool | None:
        """Return True if the write is durable, False if it failed, and None if its outcome is not known (yet)."""
        ...


class Database(Protocol):
    """A store or a cluster. The methods raise StorageError and its subclasses."""

    @property
    def schema(self) -> SchemaTree:
        """The schema; read-only for callers."""
        ...

    @property
    def options(self) -> StoreOptions:
        """The options of the store: time unit, partition interval, and others."""
        ...

    def read_point(
        self, consistency: str, horizon: ReadHorizon | None = None, deadline_ns: int | None = None
    ) -> ReadPoint:
        """Return a new read point for a read with this consistency, without waiting.

        `horizon` is the state that the session has seen. The read must include that state, and the database updates
        `horizon`. `deadline_ns` is the monotonic time at which all waiting ends.
        """
        ...

    def catch_up(self, point: ReadPoint, scope: ReadScope) -> bool:
        """Wait until the part of the database in `scope` is as current as the read point requires.

        Returns True if some part was requested for the first time. If True is returned, the schema may have changed.
        """
        ...

    def finish_schema_read(self, point: ReadPoint) -> None:
        """Record that a statement has read the schema, so that its session never sees an older schema.

        For a strong read, every drop that the schema reflects has taken effect in all groups when the call returns.
        """
        ...

    def view(self, point: ReadPoint, sources: Sources = None) -> ReadView:
        """Return a snapshot of the data of these sources; the caller closes it."""
        ...

    def hold(self, point: ReadPoint) -> ReadView:
        """Take a snapshot for many statements now, on all nodes, and return it; the caller closes it."""
        ...

    def write(
        self,
        tablets: Sequence[Tablet | MultiTablet],
        creates: Sequence[SchemaChange] = (),
        *,
        request: WriteRequest,
    ) -> None:
        """Make the schema changes that the tablets need, and then write the tablets."""
        ...

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """Return the request, numbered if the database needs a number to apply a repeated write only once."""
        ...

    def submit_writes(self, writes: Sequence[tuple[Tablet, WriteRequest]]) -> Sequence[PendingWrite | None]:
        """Submit tablets of existing series as separate writes, without waiting for one before submitting the next.

        Each tablet comes with the request of its client. To repeat a write, the caller calls `write` with the same
        request. The result has None for a tablet that the caller must pass to `write` instead.
        """
        ...

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest) -> None:
        """Apply schema changes other than deletions."""
        ...

    def delete(self, patterns: Sequence[str], time: TimeRange, *, request: WriteRequest) -> None:
        """Delete points."""
        ...

    def delete_series(self, pattern: str, *, request: WriteRequest) -> int:
        """Delete series and their points; return the number of deleted series."""
        ...

    def delete_database(self, path: str, *, request: WriteRequest) -> None:
        """Delete a database with all its data."""
        ...

    def load(self, path: str, options: LoadOptions, *, request: WriteRequest) -> int:
        """Load a TsFile atomically; return the number of files that the database made from it."""
        ...

    @property
    def shelf(self) -> CheckpointRegistry:
        """The checkpoints that were taken for backups and have not been released yet."""
        ...

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:
        """Capture all data of this node. If `since` is given, also capture the store's log from that record on."""
        ...

    def partitions(self) -> Sequence[PartitionStatus]:
        """Return the partitions of this node and their files."""
        ...

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """Flush memtables to files."""
        ...

    def merge(
        self, databases: Sequence[str] | None = None, *, full: bool = False, stopped: Callable[[], bool] = ...
    ) -> None:
        """Compact files into as few as possible; return when the compaction is done or `stopped` returns True.

        If `full`, also rewrite files with deleted points.
        """
        ...

    @property
    def compaction(self) -> CompactionCounters:
        """Compaction counters of this node since it started."""
        ...

    @property
    def latest(self) -> LatestCache:
        """The cache of latest points on this node."""
        ...

    def clear_caches(self) -> None:
        """Drop everything cached from the files of this node: pages, indexes, windows, latest points."""
        ...

    def status(self) -> StoreStatus:
        """Return statistics about the data of this node."""
        ...

    def blocked_by(self) -> str | None:
        """Return the reason why writes are refused at the moment, or None if they are not."""
        ...


def wait_for_schema(database: Database, patterns: Collection[str], deadline_ns: int | None = None) -> None:
    """Wait until the schema at and below path patterns is current, for a statement that checks or changes it.

    `deadline_ns` is the monotonic time at which the wait ends.
    """
    database.catch_up(database.read_point("strong", deadline_ns=deadline_ns), ReadScope(patterns))

"""What the engine asks of the database below it: one node's store, or a whole cluster.

    read_point(consistency) -> ReadPoint   made for a statement
    catch_up(point, scope)                 before it uses the part of the schema, or the data, that the scope names
    schema, view(point)                    what it then sees
    write, change_schema, delete ...       return when they are done as durably as promised; each names the client's
                                           request that it belongs to

`saros_storage.store.Store` and `saros_cluster.database.database.ClusterDatabase` are both one. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from saros_storage.base.tablet import Tablet
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

#: What a read may be: see `catch_up`.
CONSISTENCIES = ("strong", "mid", "weak")


class PendingWrite(Protocol):
    """A write that was begun."""

    def wait(self, seconds: float) -> bool | None:
        """Return whether it is done, as durably as promised. None: that is not known, or not yet."""
        ...


class Database(Protocol):
    """See the module. The methods raise StorageError and its kinds."""

    @property
    def schema(self) -> SchemaTree:
        """The schema; look, do not change."""
        ...

    @property
    def options(self) -> StoreOptions:
        """Time unit, interval, and the like."""
        ...

    def read_point(
        self, consistency: str, horizon: ReadHorizon | None = None, deadline_ns: int | None = None
    ) -> ReadPoint:
        """A new read point for a read of this consistency; nothing is waited for.

        `horizon`: what its session was shown before, which it should see again, and is told of. `deadline_ns`: the end
        of all waiting, on the monotonic clock.
        """
        ...

    def catch_up(self, point: ReadPoint, scope: ReadScope) -> bool:
        """Wait until what a scope names can be seen as the point says.

        Returns whether something was asked for that had not been before: then the schema may be a newer one.
        """
        ...

    def finish_schema_read(self, point: ReadPoint) -> None:
        """Record that a statement has read the schema: its session never sees an older one.

        When this returns to a strong read, all that the schema shows as dropped is gone in all groups.
        """
        ...

    def view(self, point: ReadPoint, sources: Sources = None) -> ReadView:
        """A picture of the data of these sources; close it."""
        ...

    def hold(self, point: ReadPoint) -> ReadView:
        """A picture for many statements: all of it, on other nodes too, is of now; close it."""
        ...

    def write(self, tablets: Sequence[Tablet], creates: Sequence[SchemaChange] = (), *, request: WriteRequest) -> None:
        """Write batches after the schema changes that they need."""
        ...

    def numbered(self, request: WriteRequest) -> WriteRequest:
        """Return the request with a number, if the database needs one to write it once however often it is told to."""
        ...

    def submit_writes(self, writes: Sequence[tuple[Tablet, WriteRequest]]) -> Sequence[PendingWrite | None]:
        """Begin to write tablets of series that exist, each by itself, without waiting for one after the other.

        Each comes with its client's request, which `write` may repeat. None: `write` has to write it.
        """
        ...

    def change_schema(self, changes: Sequence[SchemaChange], *, request: WriteRequest) -> None:
        """Carry out changes, not deletions."""
        ...

    def delete(self, patterns: Sequence[str], time: TimeRange, *, request: WriteRequest) -> None:
        """Delete points."""
        ...

    def delete_series(self, pattern: str, *, request: WriteRequest) -> int:
        """Delete series and their points; answers how many series there were."""
        ...

    def delete_database(self, path: str, *, request: WriteRequest) -> None:
        """Delete a database with all in it."""
        ...

    def load(self, path: str, options: LoadOptions, *, request: WriteRequest) -> int:
        """Take in a TsFile, all of it or nothing; how many files it became."""
        ...

    @property
    def shelf(self) -> CheckpointRegistry:
        """Where what was captured for backups is until it is let go."""
        ...

    def create_checkpoint(self, since: int | None = None) -> CheckpointSet:
        """Capture all that this node has; `since`: a store's log from this record on is wanted too."""
        ...

    def partitions(self) -> Sequence[PartitionStatus]:
        """The partitions of this node, and their files."""
        ...

    def flush(self, databases: Sequence[str] | None = None) -> None:
        """Put what is in memory into files."""
        ...

    def merge(
        self, databases: Sequence[str] | None = None, *, full: bool = False, stopped: Callable[[], bool] = ...
    ) -> None:
        """Merge files into as few as may be, and wait for it, or until `stopped`.

        `full`: also rewrite files of which something was deleted.
        """
        ...

    @property
    def compaction(self) -> CompactionCounters:
        """What compaction did on this node since it was started."""
        ...

    @property
    def latest(self) -> LatestCache:
        """What this node keeps of the latest points of series."""
        ...

    def clear_caches(self) -> None:
        """Keep nothing of what was read from this node's files: pages, indexes, windows, latest points."""
        ...

    def status(self) -> StoreStatus:
        """Figures of what this node holds."""
        ...

    def blocked_by(self) -> str | None:
        """Why writes are refused at the moment, or None."""
        ...


def wait_for_schema(database: Database, patterns: Collection[str], deadline_ns: int | None = None) -> None:
    """Wait until the schema at and below path patterns is current, for a statement that checks or changes it.

    `deadline_ns`: the end of the wait, on the monotonic clock.
    """
    database.catch_up(database.read_point("strong", deadline_ns=deadline_ns), ReadScope(patterns))

"""Reads moved slots from the group that owned them: from this node's replica of that group, or at another holder.

The holder must have applied the fence, after which the slots no longer change. All holders that have applied the fence
have the same data. Thread-safe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from saros_cluster.data.command import TableVersion
from saros_cluster.data.ownership import LEFT, Arrival
from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.remote.errors import ReadLost
from saros_cluster.remote.messages import CLOSE, ReadTarget, encode_query
from saros_cluster.remote.migration_source import MigrationSource
from saros_cluster.remote.remote_reader import RemoteTarget, open_readers
from saros_cluster.routing.replicas import Replicas
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.scan.reading import ReadCounters, ScanRequest, SeriesReader, Summaries, Summary, TimeRange

_CLOSE_SECONDS = 1.0


class MigrationSources:
    """Opens the sources of partitions that have not arrived yet."""

    def __init__(self, node: NodeId, replicas: Replicas, peers: Peers, interval: int, life: int) -> None:
        """`life` is a number unique to this process. The number becomes part of the ids of queries."""
        self._node = node
        self._replicas = replicas
        self._peers = peers
        self._interval = interval
        self._life = life
        self._queries = itertools.count(1)

    def source_of(self, arrival: Arrival, database: str, number: int) -> MigrationSource:  # noqa: ARG002
        """Return a source for the data that the partition had before the move."""
        time = TimeRange(number * self._interval, (number + 1) * self._interval)
        return MigrationSource(time, partial(self._open, arrival))

    def _open(self, arrival: Arrival, request: ScanRequest) -> SeriesReader:
        machine = self._replicas.machines.get(arrival.source)
        if machine is not None and machine.replica.has_left(arrival.epoch):
            with suppress(NotHere):  # this node has left the group in the meantime
                view = self._replicas.view({arrival.source: TableVersion(arrival.epoch, LEFT)})
                return _Borrowed(view.open(request), view.close)
        failure: Exception = UserMistake("no other node has the slots that moved; run the query again", code=MOVED)
        for node in arrival.holders:
            if node != self._node:
                try:
                    return self._open_remote(node, arrival, request)
                except (Unreachable, RemoteError, ReadLost, StorageError) as error:
                    failure = error
        raise failure

    def _open_remote(self, node: NodeId, arrival: Arrival, request: ScanRequest) -> SeriesReader:
        query = QueryId(f"{self._life:016x}-underlay-{next(self._queries)}")
        target = ReadTarget(arrival.source, arrival.fence, arrival.epoch, LEFT)
        _, (reader,) = open_readers(self._peers, query, RemoteTarget(node, target), [request], pinned=False)

        def close() -> None:
            with suppress(Unreachable, RemoteError):  # the lease ends by itself
                self._peers.call(node, CLOSE, encode_query(query), _CLOSE_SECONDS)

        return _Borrowed(reader, close)


class _Borrowed:
    """A reader that, when it is closed, also releases its view or its query. Implements `SeriesReader`."""

    def __init__(self, reader: SeriesReader, give_back: Callable[[], None]) -> None:
        self._reader = reader
        self._give_back = give_back

    @property
    def counters(self) -> ReadCounters:
        """The reader's counters. Implements `SeriesReader.counters`."""
        return self._reader.counters

    def next(self) -> Block | Summary | Summaries | None:
        """Implement `SeriesReader.next`."""
        return self._reader.next()

    def close(self) -> None:
        """Implement `SeriesReader.close`."""
        try:
            self._reader.close()
        finally:
            self._give_back()

"""The view of a query on a cluster: local groups are read here, others at a holder, and all are merged by time.

    open(request)   routes: groups of the slices in the request's range        slice 0   1   2   3   4
                    local groups         -> one local reader                   group a   b   a   c   b     local: a
                    each remote group    -> a reader at its holder             local 0 2 · at b's holder 1 4 · at c's 3
                    several readers      -> merged: 0 1 2 3 4

Slices of different groups never overlap in time, and neither a block's rows nor a summary cross a slice's border. So
the item with the earliest times is returned first, unchanged. No values are compared, and summaries remain summaries.
An item with many summaries may span slices of other groups, and is cut at their borders. With one reader there is no
merging: an entirely local query runs on the local reader itself.

A query announces the series that it will open next (`expect`). A call to a holder therefore also opens the next series,
and returns the data of small ones. Each call opens twice as many series as the one before, unless their data is too
large to return at once:

    expected   s0 | s1 s2 | s3 s4 s5 s6 | ...           opened by s0, s1, s3

A query reads a group at one holder: the first candidate that answers and has applied enough. The holder pins its view
when the query first asks it. If that holder is lost later, the query fails, since another holder's view may differ. If
no candidate answers and the read may be partial, the result lacks the group's data. The query's `ReadPoint` records the
visible index of each group, local or remote. The deadline of the `ReadPoint` limits the calls that open readers. A call
that begins after the deadline has its usual timeout.

Thread-safe. The readers that it opens are not.
"""

from __future__ import annotations

import bisect
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from weakref import WeakSet

import msgspec
import numpy as np

from saros_cluster.multiraft.host import NotHere
from saros_cluster.multiraft.peers import Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import CLOSE, RENEW, encode_query
from saros_cluster.remote.remote_reader import OPEN_TIMEOUT_S, RemoteSeriesReader, RemoteTarget, open_readers
from saros_cluster.routing.no_leader import NoReplica, step_deadline_ns
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StoreClosed
from saros_storage.base.types import TIME_MIN, DataType, Int64Array
from saros_storage.read.latest import points_of
from saros_storage.read.latest_cache import Point
from saros_storage.scan.read_point import ReadPoint
from saros_storage.scan.reading import (
    MultiSeriesReader,
    ReadCounters,
    ReadView,
    ScanRequest,
    SeriesReader,
    Summaries,
    Summary,
    TimeRange,
)

logger = logging.getLogger(__name__)

#: Timeout of the call that tells a holder that a query is over. If the call fails, the query's lease runs out at that
#: holder.
CLOSE_TIMEOUT_S = 1.0
#: The timeout of that call if the holder has not answered an earlier call. It is shorter, since the caller waits to
#: see its error.
_SILENT_CLOSE_TIMEOUT_S = 0.05

#: Limit of the number of readers that one call opens: enough to make the cost of a round trip negligible. Readers that
#: turn out not to be needed cost the holder less than a few round trips.
AHEAD_MAX = 256

#: A request for no rows.
_NOTHING = ScanRequest("root", ("_",), (DataType.INT64,), aligned=False, time=TimeRange(0, 0))

#: The errors after which the view tries another holder. The holder does not answer, has no replica, has a replica that
#: lags, or has one whose slots have moved.
_ELSEWHERE = (Unreachable.code, NotHere.code, MOVED)

#: Returns the groups that have a device's slices in a range of time.
Routes = Callable[[str, TimeRange], Sequence[GroupId]]
#: Returns the holders of a group in the order in which to ask them, or no holders if the local view has the group.
Holders = Callable[[GroupId], Sequence[RemoteTarget]]

_Item = Block | Summary | Summaries
#: A reader's next item, preceded by the item's position in the order of the scan.
_Head = tuple[int, _Item, SeriesReader]


class RoutedView:
    """A query's view of local and remote groups. Implements `reading.ReadView`.

    `query` must be unique over restarts of this node.
    """

    def __init__(
        self,
        query: QueryId,
        local: ReadView,
        routes: Routes,
        holders: Holders,
        peers: Peers,
        point: ReadPoint | None = None,
        error_of: Callable[[GroupId, Exception], Exception] = lambda _, error: error,
        clock: Clock | None = None,
    ) -> None:
        """Take over the local view. `point` records the visible index of each group.

        `error_of` returns the error to raise for a group whose last holder has failed. `clock` is the clock that the
        point's deadline refers to, or None if there is no deadline.
        """
        self._error_of = error_of
        self._clock = clock
        self._point = point or ReadPoint()
        self._query = query
        self._local = local
        self._routes = routes
        self._holders = holders
        self._peers = peers
        self._lock = threading.Lock()
        self._closed = False
        #: For each group, the first answer of `holders`, or None if the group is local.
        self._chosen: dict[GroupId, _Group | None] = {}
        #: The requests that will be opened, in order, and for each request its position.
        self._expected: list[ScanRequest] = []
        self._places: dict[ScanRequest, int] = {}
        #: Nodes that may have views or readers for the query.
        self._queried: set[NodeId] = set()
        #: The nodes of `_queried` that have not answered.
        self._silent: set[NodeId] = set()
        self._readers: WeakSet[RemoteSeriesReader] = WeakSet()

    def expect(self, request: ScanRequest) -> None:
        """Implement `ReaderFactory.expect`."""
        with self._lock:
            self._places.setdefault(request, len(self._expected))
            self._expected.append(request)

    def open(self, request: ScanRequest) -> SeriesReader:
        """Implement `ReaderFactory.open`. Raises StorageError, such as Unreachable, RemoteError, or ReadLost."""
        readers = self._open_all(request)
        return readers[0] if len(readers) == 1 else MergedReader(readers, descending=request.descending)

    def open_lockstep(self, request: ScanRequest) -> MultiSeriesReader | None:
        """Implement `ReaderFactory.open_lockstep`, but only for requests whose groups are all local."""
        return self._local.open_lockstep(request) if self._is_local(request) else None

    def open_in_step(self, request: ScanRequest) -> SeriesReader | None:
        """Implement `ReaderFactory.open_in_step`, but only for requests whose groups are all local."""
        return self._local.open_in_step(request) if self._is_local(request) else None

    def cuts(self, request: ScanRequest) -> Sequence[int]:  # noqa: ARG002 (the factory's protocol)
        """Implement `ReaderFactory.cuts`. The result is empty, since holders are chosen when a reader is opened."""
        return ()

    def _is_local(self, request: ScanRequest) -> bool:
        """Return whether all groups that may have data of the request are read on this node."""
        return all(self._group(group) is None for group in dict.fromkeys(self._routes(request.device, request.time)))

    def latest(self, request: ScanRequest, counters: ReadCounters) -> list[Point | None]:
        """Implement `ReaderFactory.latest`. Raises what `open` raises."""
        if self._is_local(request):
            return self._local.latest(request, counters)
        readers = self._open_all(request)
        found: list[Point | None] = [None] * len(request.measurements)
        try:
            for reader in readers:
                while (item := reader.next()) is not None:
                    assert isinstance(item, Block)
                    # Slices of different groups never overlap in time.
                    found = [max(a, b, key=_time_of) for a, b in zip(found, points_of(item), strict=True)]
        finally:
            for reader in readers:
                reader.close()
                counters.add(reader.counters)
        return found

    def _open_all(self, request: ScanRequest) -> list[SeriesReader]:
        """Return readers that together cover the request."""
        readers: list[SeriesReader] = []
        here = False
        try:
            for group in dict.fromkeys(self._routes(request.device, request.time)):
                elsewhere = self._group(group)
                if elsewhere is None:
                    here = True
                elif (remote := self._open_remote(elsewhere, request)) is not None:
                    readers.append(remote)
            if here or not readers:
                readers.append(self._local.open(request))
        except BaseException:
            for reader in readers:
                reader.close()
            raise
        return readers

    def _group(self, group: GroupId) -> _Group | None:
        with self._lock:
            if group in self._chosen:
                return self._chosen[group]
        holders = self._holders(group)
        if not holders:
            self._point.show(group, self._local.shown.get(group, 0))
        with self._lock:
            return self._chosen.setdefault(group, _Group(deque(holders)) if holders else None)

    def _open_remote(self, group: _Group, request: ScanRequest) -> RemoteSeriesReader | None:
        """Return a reader at the group's holder, or None if the group is left out."""
        with group.opening:
            reader = group.ready.pop(request, None)
            if reader is not None:
                return reader
            if group.id in self._point.missing:  # another thread has found that no holder answers
                return None
            try:
                return self._open_several(group, request)
            except NoReplica as error:
                if group.pinned or not self._point.partial:
                    raise
                with self._lock:
                    self._point.leave_out([(group.id, error)])
                return None

    def pin(self, group: GroupId) -> None:
        """Pin a view at the group's holder now, before any of the group's data is read. Raises what `open` raises."""
        elsewhere = self._group(group)
        if elsewhere is None:
            return
        with elsewhere.opening:
            if not elsewhere.pinned:
                for reader in self._ask(elsewhere, [_NOTHING]):
                    reader.close()
                elsewhere.pinned = True

    def _open_several(self, group: _Group, request: ScanRequest) -> RemoteSeriesReader:
        """Open a reader, together with the readers that are expected next."""
        group.opened.add(request)
        requests = [request, *self._following(group, request)]
        readers = self._ask(group, requests)
        with self._lock:
            if not self._closed:
                self._readers.update(readers)
                group.add_opened(requests, readers)
                return readers[0]
        # The holder may have received the message that closes the query before this call, so send that message again.
        for reader in readers:
            reader.close()
        self._notify(CLOSE, [group.target.node])
        raise StoreClosed(f"query {self._query} has ended")

    def _ask(self, group: _Group, requests: Sequence[ScanRequest]) -> list[RemoteSeriesReader]:
        """Open readers at the group's holder. Until a holder has pinned a view, try other holders if one fails."""
        deadline_ns = self._deadline_ns()
        while True:
            holder = group.target
            with self._lock:
                self._check_open()
                self._queried.add(holder.node)
            try:
                shown, readers = open_readers(
                    self._peers,
                    self._query,
                    holder,
                    requests,
                    pinned=group.pinned,
                    abandoned=group.abandoned,
                    timeout_s=self._timeout_s(deadline_ns),
                )
            except (Unreachable, RemoteError) as error:
                if getattr(error, "code", None) not in _ELSEWHERE:
                    raise
                if isinstance(error, Unreachable):
                    self._silent.add(holder.node)
                if group.pinned or len(group.holders) == 1:
                    raise self._error_of(group.id, error) from error
                group.holders.popleft()
            else:
                self._point.show(group.id, shown)
                return readers

    def _deadline_ns(self) -> int | None:
        """Return the time (monotonic) at which calls to holders end, or None if each call has its usual timeout."""
        end_ns = self._point.deadline_ns
        return None if self._clock is None or end_ns is None or self._clock.monotonic_ns() >= end_ns else end_ns

    def _timeout_s(self, deadline_ns: int | None) -> float:
        if self._clock is None or deadline_ns is None:
            return OPEN_TIMEOUT_S
        now_ns = self._clock.monotonic_ns()
        return (step_deadline_ns(now_ns, OPEN_TIMEOUT_S, deadline_ns) - now_ns) / 1e9

    def _following(self, group: _Group, request: ScanRequest) -> Iterator[ScanRequest]:
        """Yield the requests of the group that are expected after this one and should be opened in the same call."""
        place = self._places.get(request)
        if place is None:
            return
        for other in dict.fromkeys(self._expected[place + 1 : place + group.ahead]):
            if other not in group.opened and group.id in self._routes(other.device, other.time):
                yield other

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"query {self._query} has ended")

    def renew(self) -> None:
        """Renew the query's lease at the holders. The caller does this well within the lease."""
        with self._lock:
            asked = sorted(self._queried) if not self._closed else []
        self._notify(RENEW, asked)

    @property
    def shown(self) -> Mapping[int, int]:
        """The visible index of each local group. Implements `ReadView.shown`."""
        return self._local.shown

    def close(self) -> None:
        """Implement `ReadView.close`. Tell the holders that the query is over, and wait briefly for their answers."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            asked, readers = sorted(self._queried), list(self._readers)
        for reader in readers:
            reader.close()
        self._notify(CLOSE, asked)  # also ends calls that other threads are waiting for
        self._local.close()

    def _notify(self, name: str, nodes: Sequence[NodeId]) -> None:
        for node in nodes:
            timeout_s = _SILENT_CLOSE_TIMEOUT_S if node in self._silent else CLOSE_TIMEOUT_S
            try:
                self._peers.call(node, name, encode_query(self._query), timeout_s)
            except (Unreachable, RemoteError) as error:
                logger.info("notifying a replica failed", extra={"call": name, "query": self._query, "why": str(error)})


class _Group(msgspec.Struct):
    """A query's state of a remote group.

    Only a thread that holds the lock `opening` changes the state. The thread holds this lock during calls.
    """

    #: The possible holders. The first holder is asked. The other holders are alternatives until a view is pinned.
    holders: deque[RemoteTarget]
    opening: threading.Lock = msgspec.field(default_factory=threading.Lock)
    #: True once the holder has pinned a view.
    pinned: bool = False
    #: The number of readers that the next call opens, unless fewer are expected.
    ahead: int = 1
    opened: set[ScanRequest] = msgspec.field(default_factory=set)
    #: Readers that are open but not requested yet.
    ready: dict[ScanRequest, RemoteSeriesReader] = msgspec.field(default_factory=dict)
    #: Numbers of the readers that the holder should end.
    abandoned: deque[int] = msgspec.field(default_factory=deque)

    @property
    def id(self) -> GroupId:
        """The group's number."""
        return self.target.target.group

    @property
    def target(self) -> RemoteTarget:
        """The holder that the query asks."""
        return self.holders[0]

    def add_opened(self, requests: Sequence[ScanRequest], readers: Sequence[RemoteSeriesReader]) -> None:
        """Record the readers that a call has opened. All readers except the first are stored for later requests."""
        self.pinned = True
        self.opened.update(requests)
        self.ready.update(zip(requests[1:], readers[1:], strict=True))
        brought = sum(reader.has_received for reader in readers)
        all_came = len(readers) == 1 or brought == len(readers)
        self.ahead = min(2 * self.ahead, AHEAD_MAX) if all_came else max(brought, 1)


class MergedReader:
    """Merges readers of one scan whose items never overlap in time. Implements `reading.SeriesReader`.

    It returns no item before every reader has its first item. So a holder that cannot be reached is noticed early.
    """

    def __init__(self, readers: Sequence[SeriesReader], *, descending: bool) -> None:
        self._waiting = list(readers)
        self._descending = descending
        #: The readers' heads in descending order of positions: the next item is the list's last.
        self._heads: list[_Head] = []
        self._counters = ReadCounters()

    @property
    def counters(self) -> ReadCounters:
        """The counters of the readers that have ended. Implements `SeriesReader.counters`."""
        return self._counters

    def next(self) -> _Item | None:
        """Implement `SeriesReader.next`."""
        if self._waiting:
            self._fetch()
        if not self._heads:
            return None
        _, item, reader = self._heads.pop()
        if isinstance(item, Summaries) and self._heads:
            rows = int(np.searchsorted(self._places(item), self._heads[-1][0]))
            if rows < item.rows:
                self._put(item.slice(rows, item.rows), reader)
                return item.slice(0, rows)
        self._waiting.append(reader)
        return item

    def _fetch(self) -> None:
        """Fetch the next item of every reader that has no head. Close readers that have ended."""
        while self._waiting:
            reader = self._waiting[-1]
            item = reader.next()
            self._waiting.pop()
            if item is None:
                self._finish(reader)
            else:
                self._put(item, reader)

    def _put(self, item: _Item, reader: SeriesReader) -> None:
        bisect.insort(self._heads, (self._place(item), item, reader), key=_order_of)

    def _place(self, item: _Item) -> int:
        """Return an item's position in the scan.

        The position may be any time in a block or summary, since items do not overlap.
        """
        if isinstance(item, Summaries):
            return int(self._places(item.slice(0, 1))[0])
        time = int(item.times[0]) if isinstance(item, Block) else item.start
        return ~time if self._descending else time

    def _places(self, item: Summaries) -> Int64Array:
        # ~t reverses the order as -t does, and cannot overflow for the smallest time.
        return ~item.starts if self._descending else item.starts

    def _finish(self, reader: SeriesReader) -> None:
        reader.close()
        self._counters.add(reader.counters)

    def close(self) -> None:
        """Implement `SeriesReader.close`."""
        readers = self._waiting + [reader for _, _, reader in self._heads]
        self._waiting, self._heads = [], []
        for reader in readers:
            self._finish(reader)


def _time_of(point: Point | None) -> int:
    return TIME_MIN - 1 if point is None else point[0]


def _order_of(head: _Head) -> int:
    return -head[0]

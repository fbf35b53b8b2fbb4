"""Nodes that reach each other by direct calls, with planned faults. The series are divided among the nodes' stores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from manual_clock import ManualClock
from quick_disk import QuickDisk

from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import slot_of
from saros_cluster.raft.messages import GroupId, Message
from saros_cluster.remote.codec import Item
from saros_cluster.remote.messages import STREAM, ReadTarget
from saros_cluster.remote.reader_service import ReaderService
from saros_cluster.remote.remote_reader import RemoteTarget
from saros_cluster.remote.routed_view import RoutedView
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import Compressor, DataType, Encoding, Scalar
from saros_storage.folder.store_options import StoreOptions
from saros_storage.scan.read_point import ReadPoint
from saros_storage.scan.reading import ReadCounters, ReadView, ScanRequest, SeriesReader, TimeRange
from saros_storage.schema import CreateDatabase, CreateSeries, SchemaChange, SeriesSchema
from saros_storage.store import Store

DATABASE = "root.db"
PLAIN, ALIGNED = "root.db.plain", "root.db.aligned"
TYPES = {
    "i": DataType.INT32,
    "d": DataType.DOUBLE,
    "t": DataType.TEXT,
    "b": DataType.BOOLEAN,
    "l": DataType.INT64,
    "f": DataType.FLOAT,
    "s": DataType.STRING,
    "o": DataType.BLOB,
    "m": DataType.TIMESTAMP,
    "a": DataType.DATE,
}
SLICE = 100
SLICES = range(-2, 5)
#: The first timestamp of all slices, and the end of the last slice.
FIRST, END = SLICES.start * SLICE, SLICES.stop * SLICE
NODE1, NODE2, NODE3 = NodeId(1), NodeId(2), NodeId(3)
QUERY = QueryId("q")
TARGET = ReadTarget(GroupId(2), None, 1)
#: Compaction is off, so that the files do not depend on timing.
OPTIONS = StoreOptions(durability="os", time_partition_interval=SLICE, page_rows=3, compaction=False)


# ---------------------------------------------------------------------------------------------- the network


@dataclass
class Network:
    """The services of all nodes.

    To cause a fault, a test lets `before` or `after` raise an exception, which the caller of the service gets.
    """

    services: dict[NodeId, ReaderService] = field(default_factory=dict)
    #: Called before a call or stream reaches its node.
    before: Callable[[NodeId, str], None] = lambda _node, _name: None
    #: Called after a call has had its effect, and before its answer arrives.
    after: Callable[[NodeId, str], None] = lambda _node, _name: None
    #: The index of the answer before which a node's stream is cut, by node.
    cuts: dict[NodeId, int] = field(default_factory=dict)
    #: The calls, streams and answers, as (name, node), in order.
    log: list[tuple[str, NodeId]] = field(default_factory=list)


class FakePeers:
    """Implements `Peers` for one node."""

    def __init__(self, network: Network, me: NodeId) -> None:
        self._network = network
        self._me = me

    def send(self, node: NodeId, messages: Sequence[Message]) -> None:
        raise AssertionError("remote reading sends no messages")

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        assert timeout_s > 0
        self._network.before(node, name)
        self._network.log.append((name, node))
        try:
            answer = self._network.services[node].call_handlers()[name](self._me, request)
        except Exception as error:
            raise as_remote(node, error) from error
        self._network.after(node, name)
        return answer

    def stream(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> FakeAnswers:
        assert timeout_s > 0
        self._network.before(node, name)
        self._network.log.append((name, node))
        handler = self._network.services[node].stream_handlers()[name]
        return FakeAnswers(self._network, node, lambda: handler(self._me, request))


class FakeAnswers:
    """A stream of answers. The node makes the first answer when the stream opens, and each later answer on demand."""

    def __init__(self, network: Network, node: NodeId, begin: Callable[[], Iterator[bytes]]) -> None:
        self._network = network
        self._node = node
        self._begin = begin
        self._answers: Iterator[bytes] | None = None
        self._count = 0
        self._kept: deque[bytes | BaseException] = deque()
        self._make()

    def _make(self) -> None:
        try:
            if self._answers is None:
                self._answers = self._begin()
            if self._network.cuts.get(self._node) == self._count:
                self.close()
                self._kept.append(Unreachable(self._node, "the connection was cut"))
                return
            self._count += 1
            self._kept.append(next(self._answers))
        except StopIteration as end:
            self._kept.append(end)
        except Exception as error:  # noqa: BLE001 (the top of a call)
            self._kept.append(as_remote(self._node, error))

    def __iter__(self) -> FakeAnswers:
        return self

    def __next__(self) -> bytes:
        if not self._kept:
            self._make()
        self._network.log.append(("answer", self._node))
        found = self._kept.popleft()
        if isinstance(found, BaseException):
            raise found
        return found

    def close(self) -> None:
        if self._answers is not None:
            self._answers.close()  # type: ignore[attr-defined]


def as_remote(node: NodeId, error: Exception) -> RemoteError:
    """Return the error that a caller gets if the handler on `node` raises `error`."""
    code = getattr(error, "code", None)
    return RemoteError(node, code if isinstance(code, int) else 2001, str(error))


def unreachable(node: NodeId, name: str) -> Callable[[NodeId, str], None]:
    def fault(asked: NodeId, call: str) -> None:
        if (node, name) == (asked, call):
            raise Unreachable(node, "gone")

    return fault


class Altered:
    """A service whose stream handler is replaced by `stream`."""

    def __init__(self, service: ReaderService, stream: Callable[[NodeId, bytes], Iterator[bytes]]) -> None:
        self.call_handlers = service.call_handlers
        self._stream = stream

    def stream_handlers(self) -> object:
        return {STREAM: self._stream}


# ---------------------------------------------------------------------------------------------- the plant


def tablet(device: str, times: Sequence[int], **columns: Sequence[Scalar]) -> Tablet:
    values = tuple(Column.of(TYPES[name], column) for name, column in columns.items())
    return Tablet(device, tuple(columns), np.array(times, np.int64), values, device == ALIGNED)


def request(device: str, *names: str, start: int = -(2**63), end: int = 2**63 - 1, back: bool = False) -> ScanRequest:
    names = names or ("d",)
    return ScanRequest(device, names, tuple(TYPES[n] for n in names), device == ALIGNED, TimeRange(start, end), back)


class Plant:
    """Two copies of the same series: one copy is in a single store, the other is divided among the stores of nodes."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.clock = ManualClock()
        self.network = Network()
        self.peers = FakePeers(self.network, NodeId(1))
        self.whole = self._store(folder / "whole")
        self.stores = [self._store(folder / f"node{number}") for number in range(1, nodes + 1)]
        for number, store in enumerate(self.stores, 1):
            service = ReaderService(lambda _target, store=store: store.view(), self.clock)
            self.network.services[NodeId(number)] = service
        self._queries = 0

    @staticmethod
    def _store(folder: Path) -> Store:
        store = Store.open(str(folder), OPTIONS, QuickDisk(), SystemClock())
        series = tuple(SeriesSchema(n, t, Encoding.PLAIN, Compressor.UNCOMPRESSED) for n, t in TYPES.items())
        creates: list[SchemaChange] = [CreateDatabase(DATABASE)]
        creates += [CreateSeries(PLAIN, False, series), CreateSeries(ALIGNED, True, series)]
        store.write([], creates)
        return store

    def group(self, slice_: int) -> GroupId:
        """Return the group of a slice. Group n is on node n; node 1 runs the queries."""
        return GroupId(1 + slot_of(DATABASE, slice_) % len(self.stores))

    def write(self, batch: Tablet) -> None:
        self.whole.write([batch])
        slices = batch.times // SLICE
        for number in np.unique(slices).tolist():
            assert number in SLICES
            at = np.flatnonzero(slices == number)
            rows = tuple(column.take(at) for column in batch.columns)
            part = Tablet(batch.device, batch.measurements, batch.times[at], rows, batch.aligned)
            self.stores[self.group(number) - 1].write([part])

    def delete(self, pattern: str, time: TimeRange) -> None:
        for store in (self.whole, *self.stores):
            store.delete([pattern], time)

    def flush(self) -> None:
        for store in (self.whole, *self.stores):
            store.flush()

    def routes(self, device: str, time: TimeRange) -> list[GroupId]:
        assert device.startswith(DATABASE)
        return [self.group(n) for n in SLICES if n * SLICE < time.end and time.start < (n + 1) * SLICE]

    @staticmethod
    def holders(group: GroupId) -> list[RemoteTarget]:
        return [] if group == 1 else [RemoteTarget(NodeId(group), ReadTarget(group, 7, 3))]

    def view(self, local: ReadView | None = None, point: ReadPoint | None = None) -> RoutedView:
        """Return the view of a new query on node 1."""
        self._queries += 1
        query = QueryId(f"q{self._queries}")
        return RoutedView(query, local or self.stores[0].view(), self.routes, self.holders, self.peers, point)

    def slice_of(self, group: int) -> ScanRequest:
        """Return a request to scan a slice that only this group has."""
        number = next(n for n in SLICES if self.group(n) == group)
        return request(PLAIN, "i", start=number * SLICE, end=(number + 1) * SLICE)

    def services(self) -> list[ReaderService]:
        return list(self.network.services.values())

    def left(self) -> list[tuple[int, int, int]]:
        """Return the numbers of open (queries, readers, views) of each node."""
        return [(s.open_queries, s.open_readers, s.open_views) for s in self.services()]

    def check_nothing_is_left(self) -> None:
        assert [(0, 0, 0)] * len(self.stores) == self.left()
        assert [0] * len(self.stores) == [store.status().views for store in self.stores]

    def close(self) -> None:
        for store in (self.whole, *self.stores):
            store.close()


def drain(reader: SeriesReader) -> list[object]:
    """Return all items of a reader; divide blocks into rows, so that the sizes of blocks do not matter."""
    found: list[object] = []
    while (item := reader.next()) is not None:
        if isinstance(item, Block):
            assert item.rows > 0
            columns = [column.to_list() for column in item.columns]
            found += zip(item.times.tolist(), *columns, strict=True)
        else:
            found.append(item)
    reader.close()
    return found


def read(view: ReadView, wanted: ScanRequest) -> list[object]:
    """Return the result of a scan of a view, and close the view."""
    try:
        return drain(view.open(wanted))
    finally:
        view.close()


# ---------------------------------------------------------------------------------------------- fake views


class FakeView:
    """A view whose readers return the items that a function makes."""

    def __init__(self, items: Callable[[], object]) -> None:
        self._items = items
        self.shown: dict[int, int] = {}
        self.closed = False
        self.open_readers = 0

    def expect(self, _request: ScanRequest) -> None:
        raise AssertionError("only a query's own view is told what will be opened")

    def latest(self, _request: ScanRequest, _counters: ReadCounters) -> list[tuple[int, Scalar] | None]:
        raise AssertionError("holders are asked by readers")

    def cuts(self, _request: ScanRequest) -> list[int]:
        raise AssertionError("holders are asked by readers")

    def open_lockstep(self, _request: ScanRequest) -> None:
        raise AssertionError("holders are asked for single series")

    def open_in_step(self, _request: ScanRequest) -> None:
        raise AssertionError("holders are asked for single series")

    def open(self, _request: ScanRequest) -> FakeReader:
        assert not self.closed
        self.open_readers += 1
        return FakeReader(iter(self._items()), self)  # type: ignore[call-overload]

    def close(self) -> None:
        assert not self.closed
        assert self.open_readers == 0
        self.closed = True


class FakeReader:
    def __init__(self, items: Iterator[Item], view: FakeView) -> None:
        self._items = items
        self._view = view
        self.counters = ReadCounters()

    def next(self) -> Item | None:
        assert not self._view.closed
        return next(self._items, None)

    def close(self) -> None:
        assert not self._view.closed
        self._view.open_readers -= 1


def block(number: int, rows: int = 1, width: int = 1) -> Block:
    times = np.arange(number * rows, (number + 1) * rows)
    return Block.timed(times, [Column(DataType.DOUBLE, times.astype(np.float64)) for _ in range(width)])

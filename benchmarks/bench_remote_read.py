"""Read a series that another node stores, over gRPC and loopback; print points and bytes per second of the best round.

python benchmarks/bench_remote_read.py [million points]

The node that has the series is a separate process, the holder. `blocks` reads blocks that the holder keeps in memory,
to measure codec and transport. `join` reads a hundred series concurrently, a block of each in turn; the holder has too
few streams for them, so most blocks need separate calls. `store` reads a real store without a cache, whose files are
decoded during the read; the time of the same scan in the holder's process is printed next to it. `average` runs
AggregateScan for `count` and `avg`, over all time or in windows of 600 and 60 points.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from functools import partial

import numpy as np

from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.remote.messages import CLOSE, ReadTarget, encode_query
from saros_cluster.remote.reader_service import ReaderService
from saros_cluster.remote.remote_reader import RemoteTarget, open_readers
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.transport.handshake import Identity
from saros_engine.operators.operator import OperatorContext
from saros_engine.operators.scan.aggregate_scan import AggregateScanOperator
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import AggregateCall, AggregateScan, Stage, TimeWindows
from saros_scheduler.task import QueryId
from saros_storage.base.block import Block, Column
from saros_storage.base.clock import SystemClock
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import DEFAULT_COMPRESSOR, DEFAULT_ENCODING, DataType
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import LocalDisk
from saros_storage.scan.reading import ReadCounters, ScanRequest
from saros_storage.schema import CreateDatabase, CreateSeries, SeriesSchema
from saros_storage.store import Store

ROUNDS, BLOCK_ROWS, WRITE_ROWS = 5, 65_536, 100_000
COORDINATOR, HOLDER = NodeId(1), NodeId(2)
BLOCKS, STORE = GroupId(1), GroupId(2)
CLOCK = SystemClock()
PLAIN = ScanRequest("root.db.d", ("v",), (DataType.DOUBLE,), False)
WIDE = ScanRequest("root.db.w", tuple(f"v{n}" for n in range(10)), (DataType.DOUBLE,) * 10, True)
#: The scan of a separate device that has a twentieth of the points.
SHORT = ScanRequest("root.db.s", ("v",), (DataType.DOUBLE,), False)
TEXTS = ScanRequest("root.db.t", ("v",), (DataType.TEXT,), False)


# ---------------------------------------------------------------------------------------------- the holder


class Kept:
    """A view of a group. Its readers return blocks from memory, which are made when a device is first read."""

    def __init__(self, points, kept):
        self._points = points
        self._kept = kept

    def open(self, request):
        if request.device not in self._kept:
            rows = self._points // (20 if request.device == SHORT.device else len(request.types))
            starts = range(0, rows, BLOCK_ROWS)
            self._kept[request.device] = [_block(request, at, min(BLOCK_ROWS, rows - at)) for at in starts]
        return KeptReader(iter(self._kept[request.device]))

    def close(self):
        return


class KeptReader:
    def __init__(self, blocks):
        self._blocks = blocks
        self.counters = ReadCounters()

    def next(self):
        return next(self._blocks, None)

    def close(self):
        return


VALUES = np.random.default_rng(1).random(BLOCK_ROWS)
TEXT = Column.of(DataType.TEXT, [f"value {n}" for n in range(BLOCK_ROWS)])


def _block(request, start, rows):
    columns = [
        TEXT.slice(0, rows) if type_.is_text else Column(type_, np.roll(VALUES, number)[:rows])
        for number, type_ in enumerate(request.types)
    ]
    return Block.timed(np.arange(start, start + rows) * 1_000, columns)


def _fill(folder, points):
    store = Store.open(folder, StoreOptions(durability="os", cache_bytes=0), LocalDisk(), CLOCK)
    double = DataType.DOUBLE
    series = SeriesSchema("v", double, DEFAULT_ENCODING[double], DEFAULT_COMPRESSOR)
    store.write([], [CreateDatabase("root.db"), CreateSeries(PLAIN.device, False, (series,))])
    rng = np.random.default_rng(1)
    for start in range(0, points, WRITE_ROWS):
        values = np.round(20 + rng.normal(size=WRITE_ROWS).cumsum() * 0.01, 3)
        times = np.arange(start, start + WRITE_ROWS) * 1_000
        store.write([Tablet(PLAIN.device, ("v",), times, (Column(double, values),))])
    store.flush()
    return store


def hold(points, pipe):
    """Run the holder's process."""
    with tempfile.TemporaryDirectory() as folder:
        store = _fill(folder, points)
        kept = {}
        service = ReaderService(lambda target: Kept(points, kept) if target.group == BLOCKS else store.view(), CLOCK)
        peers = GrpcPeers(Identity("bench", HOLDER), lambda _node: None, None, CLOCK)
        calls, streams = service.call_handlers(), service.stream_handlers()
        port = peers.start("127.0.0.1", 0, receive=lambda *_: None, calls=calls, streams=streams)
        view = store.view()
        pipe.send((port, _best(lambda: _drain(view.open(PLAIN)))))
        pipe.recv()
        view.close()
        pipe.send((service.open_queries, service.open_readers, service.open_views))
        peers.close()
        store.close()


# ---------------------------------------------------------------------------------------------- the coordinator


def _drain(reader):
    size = 0
    while (block := reader.next()) is not None:
        size += block.nbytes
    reader.close()
    return size


def _best(run):
    """Return the seconds of the fastest round and the bytes that it read."""
    found = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        size = run()
        found.append((time.perf_counter() - started, size))
    return min(found)


def _remote(peers, group, *requests):
    holder = RemoteTarget(HOLDER, ReadTarget(group, None, 1))
    query = QueryId(f"q{time.monotonic_ns()}")
    readers = open_readers(peers, query, holder, requests, pinned=False)
    size = 0
    while readers:
        blocks = [reader.next() for reader in readers]
        readers = [reader for reader, block in zip(readers, blocks, strict=True) if block is not None]
        size += sum(block.nbytes for block in blocks if block is not None)
    peers.call(HOLDER, CLOSE, encode_query(query), 1)
    return size


class Remote:
    """A reader factory that reads all series from the holder."""

    def __init__(self, peers, group):
        self.query = QueryId(f"q{time.monotonic_ns()}")
        self._peers = peers
        self._holder = RemoteTarget(HOLDER, ReadTarget(group, None, 1))

    def expect(self, _request):
        return

    def open_in_step(self, _request):
        return None

    def open_lockstep(self, _request):
        return None

    def open(self, request):
        (self.reader,) = open_readers(self._peers, self.query, self._holder, [request], pinned=False)
        return self.reader


def _average(peers, group, points, window):
    """Run AggregateScan on the holder's series and return the bytes that were read."""
    double = DataType.DOUBLE
    column = (InputColumn(0, double),)
    calls = (AggregateCall("count", column, DataType.INT64), AggregateCall("avg", column, double))
    end = points * 1_000
    windows = None if window is None else TimeWindows(0, end, window * 1_000, 0, window * 1_000, 0)
    readers = Remote(peers, group)
    operator = AggregateScanOperator(
        AggregateScan(PLAIN, calls, windows, Stage.SINGLE, ()), readers, OperatorContext(clock=CLOCK)
    )
    rows = counted = 0
    while not operator.finished:
        block = operator.next()
        if block is not None:
            rows += block.rows
            counted += int(block.columns[0].numbers.sum())
    operator.close()
    assert (rows, counted) == (1 if window is None else -(-points // window), points)
    peers.call(HOLDER, CLOSE, encode_query(readers.query), 1)
    return readers.reader.counters.remote_bytes


def main():
    million = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    points = million * 1_000_000
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=hold, args=(points, theirs))
    process.start()
    port, local = pipe.recv()
    peers = GrpcPeers(Identity("bench", COORDINATOR), lambda _node: f"127.0.0.1:{port}", None, CLOCK)
    cases = [
        ("blocks, one column", lambda: _remote(peers, BLOCKS, PLAIN), points),
        ("blocks, ten columns", lambda: _remote(peers, BLOCKS, WIDE), points),
        ("blocks, text", lambda: _remote(peers, BLOCKS, TEXTS), points),
        ("blocks, join", lambda: _remote(peers, BLOCKS, *[SHORT] * 100), 100 * (points // 20)),
        ("store, remote", lambda: _remote(peers, STORE, PLAIN), points),
    ]
    for name, group in (("blocks", BLOCKS), ("store", STORE)):
        for window in (None, 600, 60):
            windows = "" if window is None else f" by {window}"
            cases.append((f"{name}, average{windows}", partial(_average, peers, group, points, window), points))
    print(f"{'case':<24}{'M points/s':>12}{'MB/s':>8}")
    for name, run, count in cases:
        seconds, size = _best(run)
        print(f"{name:<24}{count / seconds / 1e6:>12.1f}{size / seconds / 1e6:>8.0f}")
    print(f"{'store, at the holder':<24}{points / local[0] / 1e6:>12.1f}{local[1] / local[0] / 1e6:>8.0f}")
    started = time.perf_counter()
    for _ in range(200):
        empty = _remote(peers, STORE, ScanRequest("root.db.x", ("v",), (DataType.DOUBLE,), False))
        assert empty == 0
    print(f"{'an empty query':<24}{(time.perf_counter() - started) / 200 * 1e3:>12.2f} ms")
    pipe.send("end")
    assert pipe.recv() == (0, 0, 0)
    peers.close()
    process.join()


if __name__ == "__main__":
    main()

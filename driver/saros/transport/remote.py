"""Remote sessions for threads: the driver's `Session` on blocking connections.

`remote_calls` has the rules of calls. This module waits for answers. Threads may share a session.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from saros.base.target import Target
from saros.transport.exchange import Buffer, Reply
from saros.transport.node_connection import PoolLease, read_authority
from saros.transport.remote_calls import RemoteCalls, Result, run
from saros_wire.device_rows import DeviceRows, RowsWritten
from saros_wire.frames import Call
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.read_point import ReadPoint

if TYPE_CHECKING:
    import pyarrow as pa


class BlockingEvent(threading.Event):
    """An event that threads wait for. Implements `sequences.Event`."""

    async def wait(self, timeout_s: float | None = None) -> bool:  # type: ignore[override]
        """See `sequences.Event.wait`."""
        return super().wait(timeout_s)


class BlockingNetwork:
    """The connections of a session. Only one thread uses a connection during a call. Implements `Network`."""

    def __init__(self, authority: bytes | None) -> None:
        """Create a network without connections. `authority`: see `PoolLease`."""
        self._authority = authority
        self._lock = threading.Lock()
        self._leases: dict[str, PoolLease] = {}
        self._closed = False

    async def call(
        self, address: str, call: Call, head: bytes, body: Sequence[Buffer], timeout_s: float | None
    ) -> Reply:
        """See `Network.call`."""
        lease = self._leases.get(address) or self._lease(address)
        return lease.pool.call(call, head, body, timeout_s)

    def _lease(self, address: str) -> PoolLease:
        with self._lock:
            lease = self._leases.get(address)
            if lease is None:
                lease = PoolLease(address, self._authority)
                if self._closed:
                    lease.release()
                else:
                    self._leases[address] = lease
            return lease

    def event(self) -> BlockingEvent:
        """See `Network.event`."""
        return BlockingEvent()

    def close(self) -> None:
        """Release the pools. A pool that no other session of the process uses then closes its idle connections."""
        with self._lock:
            self._closed = True
            leases, self._leases = list(self._leases.values()), {}
        for lease in leases:
            lease.release()


class RemoteSession:
    """A session on a server or cluster, for threads. Implements the driver's `Session`."""

    def __init__(
        self,
        target: Target,
        *,
        time_zone: str | None,
        failover_s: float,
        timeout_s: float | None = None,
        client_id: int | None = None,
    ) -> None:
        """Connect. `RemoteCalls` describes the arguments.

        Raises OperationalError (no node answers, wrong password), InterfaceError (the certificate file cannot be read).
        """
        self._network = BlockingNetwork(read_authority(target.tls_ca))
        self._calls = RemoteCalls(
            target,
            self._network,
            RemoteOutcome,
            time_zone=time_zone,
            failover_s=failover_s,
            timeout_s=timeout_s,
            client_id=client_id,
        )
        try:
            run(self._calls.open())
        except BaseException:
            self.close()
            raise

    def execute(
        self, text: str, parameters: Sequence[object], timeout_s: float | None, *, at: ReadPoint | None = None
    ) -> RemoteOutcome:
        """See `Session.execute`."""
        return run(self._calls.execute(text, parameters, timeout_s, at=at))

    def hold(self, name: str, lease_s: float, like: ReadPoint | None) -> ReadPoint:
        """See `Session.hold`."""
        return run(self._calls.hold(name, lease_s, like))

    def let_go(self, point: ReadPoint) -> None:
        """See `Session.let_go`."""
        run(self._calls.let_go(point))

    def insert(self, device: str, times: object, columns: Mapping[str, object], *, aligned: bool | None) -> int:
        """See `Session.insert`."""
        return run(self._calls.insert(device, times, columns, aligned=aligned))

    def insert_rows(self, rows: DeviceRows) -> RowsWritten:
        """See `Session.insert_rows`."""
        return run(self._calls.insert_rows(rows))

    def write_lines(self, write: LineWrite) -> LinesWritten:
        """See `Session.write_lines`."""
        return run(self._calls.write_lines(write))

    def close(self) -> None:
        """See `Session.close`."""
        run(self._calls.close())
        self._network.close()


class RemoteOutcome(Result):
    """A remote result whose rows a thread fetches. Implements the driver's `Outcome`."""

    def next_batch(self) -> pa.RecordBatch | None:
        """See `Outcome.next_batch`."""
        return run(self.fetch_batch())

    def close(self) -> None:
        """See `Outcome.close`."""
        run(self.cancel())

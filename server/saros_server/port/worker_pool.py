"""The threads that execute clients' requests.

    serve(client) --> [ queue ] --> a worker: greets, or executes requests while they keep arriving
                                      idle                               --> parked
                                      ended                              --> lingers, is closed

Consecutive requests of a busy client run on the same thread. Between them, the only system call is the one that
receives the next request. If other clients wait for a worker, each worker puts its client back into the queue after a
request. Thread-safe.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum
from threading import Event

from saros_server.port.client import Client, Stage
from saros_server.port.connection import Connection, ConnectionClosed
from saros_server.port.limits import Limits
from saros_server.port.protocol_detection import Detection, ProtocolDetector
from saros_server.port.thread_pool import CachedThreadPool

logger = logging.getLogger(__name__)

#: After the server has ended a connection, up to this number of received bytes is discarded at a time. If a client has
#: sent more, its connection is closed.
_DISCARDED_BYTES = 1 << 20
#: While at most a quarter of the workers are in use, a worker waits for the next request of its client. Otherwise, it
#: parks an idle client immediately: the client then waits in the poller, without a thread.
_PATIENT_SHARE = 4


class WorkerPool:
    """The workers: threads that execute requests until `close`."""

    def __init__(
        self,
        detector: ProtocolDetector,
        limits: Limits,
        park: Callable[[Client], bool],
        on_over: Callable[[Client], None],
    ) -> None:
        """Prepare the workers.

        `park` begins to watch for a client's next bytes. It returns False if it cannot. `on_over` closes the client's
        socket.
        """
        self._detector = detector
        self._limits = limits
        self._park, self._on_over = park, on_over
        self._pool = CachedThreadPool(self._serve_client, limits.workers, "saros-client")
        #: The clients for which a worker is currently working.
        self._serving: set[Client] = set()
        self._patient_max = limits.workers // _PATIENT_SHARE
        self._stopping = Event()

    @property
    def is_crowded(self) -> bool:
        """True if more clients wait than there are idle workers."""
        return self._pool.is_crowded

    def serve(self, client: Client) -> None:
        """Queue a client for a worker because its bytes have arrived or its deadline has passed. Does not wait."""
        self._pool.submit(client)

    def drain(self) -> None:
        """Stop starting requests. A client's connection is closed once its request in progress has ended."""
        self._stopping.set()

    def close(self) -> None:
        """End the workers. No client may be left."""
        self._pool.close()

    def _serve_client(self, client: Client) -> None:
        self._serving.add(client)
        try:
            step = self._advance(client)
        except ConnectionClosed:
            step = _NextStep.END
        except Exception:
            logger.exception("a protocol failed", extra={"protocol": client.protocol_name})
            step = _NextStep.END
        self._serving.discard(client)
        if step is _NextStep.PARK:
            client.connection.release_buffer()
        if step is _NextStep.QUEUE:
            self.serve(client)
        elif step is _NextStep.END or not self._park(client):
            self._close_handler(client)
            self._on_over(client)

    def _advance(self, client: Client) -> _NextStep:
        """Execute the next step for a client, which depends on its stage. Raises ConnectionClosed."""
        if self._stopping.is_set():
            return _NextStep.END
        match client.stage:
            case Stage.GREETING:
                return self._greet(client)
            case Stage.SERVED:
                return self._serve(client)
            case Stage.LINGERING:
                client.connection.discard(_DISCARDED_BYTES)
                return _NextStep.END if _is_overdue(client) else _NextStep.PARK

    def _greet(self, client: Client) -> _NextStep:
        match self._detector.detect(client):
            case Detection.WAIT:
                client.is_refused = _is_overdue(client)
                return _NextStep.END if client.is_refused else _NextStep.PARK
            case Detection.REFUSED:
                client.is_refused = True
                return self._linger(client)
            case Detection.SERVE:
                client.deadline = None
                return self._serve(client)

    def _serve(self, client: Client) -> _NextStep:
        """Execute requests of the client while they keep arriving and no other clients wait."""
        connection, handler = client.connection, client.handler
        assert handler is not None
        while connection.buffered or self._has_request(connection):
            connection.begin_request()
            client.is_busy = True
            if self._stopping.is_set():
                return _NextStep.END
            client.requests += 1
            if not handler.handle():
                return self._linger(client)
            client.is_busy = False
            if self._stopping.is_set():
                return _NextStep.END
            if self._pool.is_crowded:
                return _NextStep.QUEUE if connection.buffered or connection.receive(wait=False) else _NextStep.PARK
        return _NextStep.PARK

    def _has_request(self, connection: Connection) -> bool:
        """Return whether the first bytes of a request have arrived. If few workers are in use, wait for these bytes."""
        return connection.receive(wait=len(self._serving) <= self._patient_max)

    def _linger(self, client: Client) -> _NextStep:
        """End a connection in a way that lets the client read all bytes that were sent to it."""
        self._close_handler(client)
        client.connection.end_output()
        client.stage, client.deadline = Stage.LINGERING, time.monotonic() + self._limits.linger_s
        return _NextStep.PARK

    def _close_handler(self, client: Client) -> None:
        handler, client.handler = client.handler, None
        if handler is not None:
            try:
                handler.close()
            except Exception:
                logger.exception("a protocol failed to end a connection", extra={"protocol": client.protocol_name})


class _NextStep(Enum):
    """The next step for a client."""

    PARK = 1
    #: The client has sent another request, but other clients are waiting for a worker.
    QUEUE = 2
    END = 3


def _is_overdue(client: Client) -> bool:
    return client.deadline is not None and time.monotonic() >= client.deadline

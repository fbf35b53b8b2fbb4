"""Raft's messages to one peer: a bounded queue, and the connection that empties it.

    send -> Outbox -> batches -> one client-streaming call, for as long as it lives
              |                       |
              full: drop the oldest   lost, or refused: wait 50 ms ... 1 s, connect again

A lane (the connection for the messages to one peer) is separate from other connections, so that the bytes of a snapshot
do not delay a heartbeat. A lane connects when there is something to send. It takes messages from the queue only after
the other side has answered the handshake, so the messages are the newest ones. All waiting messages are sent as one
batch. Messages that a connection took before it broke are lost: Raft repeats them.

The messages of two connections never mix: the old connection has ended before the next begins, and each carries a
number by which the other side distinguishes them.

Threads: `send` from any. Each lane has a thread that connects. While a connection lives, a thread of gRPC takes the
batches.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import grpc

from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Message
from saros_cluster.transport.channels import CONNECTION_KEY, RAFT_PATH, Dialer, call_error
from saros_cluster.transport.codec import BATCH_MESSAGES_MAX, Frame, batch_length, encode_message, join
from saros_cluster.transport.counters import Counters
from saros_cluster.transport.handshake import SENDER_KEY, Identity, handshake_metadata
from saros_storage.base.clock import Clock

logger = logging.getLogger(__name__)

#: The limit of the queue: four times the maximum number of bytes that a leader has in flight to a follower in one
#: group. If more groups send at once, messages are dropped, and Raft repeats them.
OUTBOX_BYTES_MAX = 32 << 20
OUTBOX_MESSAGES_MAX = 4 * BATCH_MESSAGES_MAX
BACKOFF_S_MIN, BACKOFF_S_MAX = 0.05, 1.0


class Outbox:
    """The frames that wait for one peer. Thread-safe."""

    def __init__(self, bytes_max: int = OUTBOX_BYTES_MAX, messages_max: int = OUTBOX_MESSAGES_MAX) -> None:
        self._bytes_max = bytes_max
        self._messages_max = messages_max
        self._changed = threading.Condition()
        self._frames: deque[Frame] = deque()
        #: Invariant: this number is the sum of the frames' sizes.
        self._bytes = 0
        self._closed = False

    def put(self, frames: Sequence[Frame]) -> int:
        """Add frames, and drop the oldest if there are too many. Return the number of dropped frames."""
        with self._changed:
            if self._closed:
                return len(frames)
            self._frames.extend(frames)
            self._bytes += sum(frame.size_bytes for frame in frames)
            before = len(self._frames)
            while self._bytes > self._bytes_max or len(self._frames) > self._messages_max:
                self._bytes -= self._frames.popleft().size_bytes
            self._changed.notify_all()
            return before - len(self._frames)

    def wait(self) -> bool:
        """Wait until there is a frame. Return False if the outbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._closed)
            return not self._closed

    def take(self, is_over: Callable[[], bool]) -> list[Frame]:
        """Wait for frames, and remove those of one batch. Return no frames if `is_over`, or if the outbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._closed or is_over())
            if self._closed or is_over():
                return []
            count = batch_length(list(islice(self._frames, BATCH_MESSAGES_MAX)))
            taken = [self._frames.popleft() for _ in range(count)]
            self._bytes -= sum(frame.size_bytes for frame in taken)
            return taken

    def notify(self) -> None:
        """Wake up the waiting threads, and let them check `is_over`."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all frames, and accept no more frames."""
        with self._changed:
            self._closed = True
            self._frames.clear()
            self._bytes = 0
            self._changed.notify_all()


class Connection:
    """The batches of one call, as an iterator that gRPC's thread reads.

    It yields nothing before `open` and after `end`.
    """

    def __init__(self, outbox: Outbox, sent: Callable[[Sequence[Frame], int], None]) -> None:
        self._outbox = outbox
        self._sent = sent
        self._opened = threading.Event()
        self._ended = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        self._opened.wait()
        frames = self._outbox.take(self._ended.is_set)
        if not frames:
            raise StopIteration
        batch = join(frames)
        self._sent(frames, len(batch))
        return batch

    def open(self) -> None:
        """Record that the other side has answered the handshake."""
        self._opened.set()

    def end(self) -> None:
        """Record that the connection has ended, for whatever reason."""
        self._ended.set()
        self._opened.set()
        self._outbox.notify()

    def wait_for_end(self) -> None:
        """Wait until the connection has ended."""
        self._ended.wait()


class PeerStream:
    """The lane of messages to one peer. `boot` distinguishes this process from earlier ones of the same node."""

    def __init__(
        self, identity: Identity, node: NodeId, boot: int, dialer: Dialer, counters: Counters, clock: Clock
    ) -> None:
        self._identity = identity
        self._node = node
        self._boot = boot
        self._dialer = dialer
        self._counters = counters
        self._clock = clock
        self._outbox = Outbox()
        self._closed = threading.Event()
        #: The number of attempts to connect, and the number of attempts that the other side accepted.
        self._attempts = 0
        self._accepted = 0
        #: The last problem that was logged, so that it is not logged again.
        self._trouble: str | None = None
        #: Held while a call is started, since no call may start after `close`.
        self._starting = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._thread = threading.Thread(target=self._run, name=f"saros-lane-{node}", daemon=True)
        self._thread.start()

    def send(self, messages: Sequence[Message]) -> None:
        """Queue messages. Never waits."""
        assert all(message.sender == self._identity.node for message in messages)
        assert all(message.receiver == self._node for message in messages)
        frames = [encode_message(message) for message in messages]
        fit = [frame for frame in frames if batch_length((frame,))]
        if len(fit) < len(frames):
            logger.error("a Raft message is too large to send", extra={"peer": self._node})
        dropped = len(frames) - len(fit) + self._outbox.put(fit)
        if dropped:
            self._counters.add(self._node, dropped=dropped)

    def close(self) -> None:
        """Drop the waiting messages, and end the connection."""
        with self._starting:
            self._closed.set()
        self._outbox.close()
        if self._channel is not None:
            self._channel.close()
        self._thread.join()

    def _run(self) -> None:
        backoff_s = BACKOFF_S_MIN
        while self._outbox.wait():
            if self._connect() > BACKOFF_S_MAX:
                backoff_s = BACKOFF_S_MIN
            self._closed.wait(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    def _connect(self) -> float:
        """Connect, and send messages until the connection ends. Return its lifetime in seconds."""
        connection = Connection(self._outbox, self._count)
        try:
            self._channel = self._dialer.dial(self._node, self._dialer.address(self._node))
            return self._hold(self._channel, connection)
        except Unreachable as error:
            self._report(error.why)
        except Exception:  # the top of a thread
            logger.exception("a peer stream failed", extra={"peer": self._node})
        finally:
            connection.end()
            if self._channel is not None:
                self._channel.close()
        return 0.0

    def _hold(self, channel: grpc.Channel, connection: Connection) -> float:
        self._attempts += 1
        number = ((CONNECTION_KEY, f"{self._boot}/{self._attempts}"),)
        metadata = handshake_metadata(self._identity, self._node) + number
        with self._starting:
            if self._closed.is_set():
                return 0.0
            call = channel.stream_unary(RAFT_PATH).future(connection, metadata=metadata)
        call.add_done_callback(lambda _: connection.end())
        if dict(call.initial_metadata() or ()).get(SENDER_KEY) != str(self._node):
            self._report(call_error(call))
            return 0.0
        began_ns = self._clock.monotonic_ns()
        self._on_connected()
        connection.open()
        connection.wait_for_end()
        self._report(call_error(call))
        return (self._clock.monotonic_ns() - began_ns) / 1e9

    def _on_connected(self) -> None:
        self._accepted += 1
        if self._accepted > 1:
            self._counters.add(self._node, reconnects=1)
        if self._trouble is not None:
            logger.info("reconnected to a node", extra={"peer": self._node})
        self._trouble = None

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble and not self._closed.is_set():
            logger.warning("no connection to a node", extra={"peer": self._node, "why": trouble})
        self._trouble = trouble

    def _count(self, frames: Sequence[Frame], size: int) -> None:
        self._counters.add(self._node, sent=len(frames), sent_bytes=size)

"""Sessions pinned to one node, for calls that depend on the node's state: checkpoints, uploads, rounds of sync.

Concurrent requests use separate connections, so that no request waits for another one. Only one thread may use a
session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from saros.base.target import Target
from saros.errors import OperationalError
from saros.transport.exchange import Buffer, CallFailed
from saros.transport.node_connection import PoolLease, read_authority
from saros.transport.remote_calls import run
from saros.transport.retry_policy import failure_of
from saros_wire.frames import Call, encode_prefix
from saros_wire.generated import client_pb2

if TYPE_CHECKING:
    from google.protobuf.message import Message

_OPEN_SECONDS = 10.0
_CLOSE_SECONDS = 5.0


class DirectSession:
    """A session at one address, opened by its constructor."""

    def __init__(self, address: str, target: Target, authority: bytes | None) -> None:
        """Open a session with the user and password of `target`. `authority`: see `PoolLease`. Raises CallFailed."""
        self.address = address
        self._prefix = encode_prefix()
        self._lease = PoolLease(address, authority)
        request = client_pb2.OpenRequest(client="python", user=target.user, password=target.password)
        try:
            reply = client_pb2.OpenReply.FromString(self.call(Call.OPEN, request, _OPEN_SECONDS))
        except BaseException:
            self.leave()
            raise
        self._prefix = encode_prefix(reply.session)

    def call(self, call: Call, message: Message | None, seconds: float, body: Sequence[Buffer] = ()) -> bytes:
        """Make a call, and return the head of its answer. Raises CallFailed."""
        return self._lease.pool.call(call, self._head(message), body, seconds).head

    def begin(self, call: Call, message: Message, seconds: float, body: Sequence[Buffer]) -> Callable[[], bytes]:
        """Send a request. Return a function that waits for the head of its answer. Both raise CallFailed."""
        answer = self._lease.pool.begin(call, self._head(message), body, seconds)
        return lambda: answer().head

    def stream(self, call: Call, message: Message, seconds: float) -> Iterator[Buffer]:
        """Make a call, and yield the items of its answer, which must begin within `seconds`. Raises CallFailed."""
        rest = self._lease.pool.call(call, self._head(message), (), seconds).rest
        if rest is None:
            return
        try:
            while (item := run(rest.next())) is not None:
                yield item
        finally:
            run(rest.cancel())

    def _head(self, message: Message | None) -> bytes:
        return self._prefix if message is None else self._prefix + message.SerializeToString()

    def close(self) -> None:
        """Close the session at the node, and release the connections."""
        try:
            self.call(Call.CLOSE, None, _CLOSE_SECONDS)
        except CallFailed:
            return  # the node expires idle sessions
        finally:
            self.leave()

    def leave(self) -> None:
        """Release the connections without notifying the node."""
        self._lease.release()


def session_at_first(target: Target) -> DirectSession:
    """Return a session at the first of the target's addresses that answers.

    Raises OperationalError (no node answers, wrong password), InterfaceError (the certificate file cannot be read).
    """
    authority = read_authority(target.tls_ca)
    failures = []
    for address in target.addresses:
        try:
            return DirectSession(address, target, authority)
        except CallFailed as failed:
            failure = failure_of(failed, address)
            if not failure.retryable:
                raise failure.error from None
            failures.append(str(failure.error))
    raise OperationalError("; ".join(failures), 2016)

"""Channels to nodes: one per address and credentials in a process, shared by its sessions, closed with the last lease.

One that could not connect is not handed to newcomers.

The dictionary of open channels is the only state of this module; a process that was forked begins with none.
Thread-safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc.experimental import ChannelOptions

from saros.errors import InterfaceError
from saros.transport.insert_batching import InsertBatcher
from saros.transport.retry_policy import CONNECT_MS
from saros_wire import payload, protocol
from saros_wire.fork_local import ForkLocal

OPTIONS = [
    ("grpc.max_receive_message_length", payload.MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", payload.MESSAGE_BYTES_MAX),
    # A node that came back is found within a second; one that is frozen or gone is given up after three.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A node that is frozen, or whose machine vanished, is noticed while a call waits. An idle channel sends no pings.
    ("grpc.keepalive_time_ms", protocol.KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", protocol.KEEPALIVE_TIMEOUT_MS),
    # The larger of the two counts, and this one is a minute by default.
    ("grpc.http2.ping_timeout_ms", protocol.KEEPALIVE_TIMEOUT_MS),
    # A call that waits long sends no data: without this, pings would stop after two.
    ("grpc.http2.max_pings_without_data", 0),
    # A channel that could not connect keeps others of the process from trying: each tries by itself.
    ("grpc.use_local_subchannel_pool", 1),
    # The caller's thread reads a stream itself: half the time of a short query.
    (ChannelOptions.SingleThreadedUnaryStream, 1),
]

_Key = tuple[str, bytes | None]


@dataclass(slots=True)
class _Shared:
    channel: grpc.Channel
    together: InsertBatcher
    leases: int = 0


_channels: ForkLocal[_Key, _Shared] = ForkLocal()


class Lease:
    """The right to use the channel to an address until `release`."""

    def __init__(self, address: str, authority: bytes | None) -> None:
        """`authority`: who signs the nodes' certificates (PEM); None: no TLS. Connects when it is first used."""
        self._key = (address, authority)
        with _channels.lock:
            shared = _channels.get(self._key)
            if shared is None:
                channel = _open(address, authority)
                shared = _channels[self._key] = _Shared(channel, InsertBatcher(channel))
            shared.leases += 1
        self._shared = shared
        self.channel = shared.channel
        #: For inserts of all who share the channel.
        self.together = shared.together

    def set_aside(self) -> None:
        """Let the next lease open a channel of its own: this one could not connect, and waits before it tries again."""
        with _channels.lock:
            self._forget()

    def release(self) -> None:
        """Give it back, once."""
        with _channels.lock:
            self._shared.leases -= 1
            if self._shared.leases == 0:
                self._forget()
                self.channel.close()

    def _forget(self) -> None:
        if _channels.get(self._key) is self._shared:
            del _channels[self._key]


def _open(address: str, authority: bytes | None) -> grpc.Channel:
    if authority is None:
        return grpc.insecure_channel(address, options=OPTIONS)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(authority), options=OPTIONS)


def read_authority(file: str | None) -> bytes | None:
    """The certificates in a file. Raises InterfaceError."""
    if file is None:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise InterfaceError(f"cannot read the certificate authority {file}: {error.strerror}") from error
    if b"-----BEGIN CERTIFICATE-----" not in content:
        raise InterfaceError(f"{file} holds no certificate in PEM form")
    return content

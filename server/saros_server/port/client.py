"""A client of the port: its connection and its stage. The thread that currently handles a client owns its fields."""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_server.port.connection import Connection
from saros_server.port.protocols import Handler

#: The protocol name for connections whose protocol is unknown or not supported.
UNKNOWN = "unknown"


class Stage(Enum):
    """The stage of a connection."""

    #: The client's protocol is not known yet.
    GREETING = 1
    SERVED = 2
    #: The server has ended the connection; the client has not closed it yet.
    LINGERING = 3


class Client(msgspec.Struct, eq=False):
    """A client of the port."""

    connection: Connection
    #: The client's host; connections are counted for each host.
    host: str
    #: The connection must use TLS.
    is_tls: bool
    #: The reason why the client will not be served; empty if it will be served.
    refusal: str = ""
    #: True if the client was refused, or did not identify its protocol in time.
    is_refused: bool = False
    stage: Stage = Stage.GREETING
    protocol_name: str = UNKNOWN
    handler: Handler | None = None
    requests: int = 0
    #: True while a request of the client is being executed.
    is_busy: bool = False
    #: The time, on the monotonic clock, until which the client may stay parked, or None if there is no limit.
    deadline: float | None = None
    #: It waits in the poller.
    is_parked: bool = False

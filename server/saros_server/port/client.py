"""A client of the port: its connection and its stage. Only the thread that handles a client uses its fields."""

from __future__ import annotations

from enum import Enum

import msgspec

from saros_server.port.connection import Connection
from saros_server.port.protocols import Handler

#: The name used in place of a protocol's name if a connection's protocol is unknown or not supported.
UNKNOWN = "unknown"


class Stage(Enum):
    """The stage of a connection."""

    #: The client's protocol is not known yet.
    GREETING = 1
    SERVED = 2
    #: The server has ended the connection, but the client has not closed it yet.
    LINGERING = 3


class Client(msgspec.Struct, eq=False):
    """A client of the port."""

    connection: Connection
    #: The client's host, since the number of connections from each host is limited.
    host: str
    #: True if the connection must use TLS.
    is_tls: bool
    #: The reason why the client will be refused. Empty if the client will be served.
    refusal: str = ""
    #: True if the client was refused, or did not identify its protocol in time.
    is_refused: bool = False
    stage: Stage = Stage.GREETING
    protocol_name: str = UNKNOWN
    handler: Handler | None = None
    requests: int = 0
    #: True while a request of the client is being executed.
    is_busy: bool = False
    #: The time on the monotonic clock until which the client may stay parked, that is, wait in the poller. None if
    #: there is no limit.
    deadline: float | None = None
    #: True while the client waits in the poller for an event.
    is_parked: bool = False

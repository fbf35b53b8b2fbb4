"""A client of the port: its connection, and how far it is. Its fields belong to the thread that has the client."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from saros_server.port.connection import Connection
from saros_server.port.protocols import Handler

#: The protocol of connections that have not said which they speak, or speak none of ours.
UNKNOWN = "unknown"


class Stage(Enum):
    """How far a connection is."""

    #: It has not said which protocol it speaks.
    GREETING = 1
    SERVED = 2
    #: It was ended; the client has yet to see it.
    LINGERING = 3


@dataclass(slots=True, eq=False)
class Client:
    """A client of the port."""

    connection: Connection
    #: Its host, by which connections are counted.
    host: str
    #: The port's side of it has a certificate.
    is_tls: bool
    #: Why it will not be served; empty: it will.
    refusal: str = ""
    #: It was told so, or did not say in time which protocol it speaks.
    is_refused: bool = False
    stage: Stage = Stage.GREETING
    protocol_name: str = UNKNOWN
    handler: Handler | None = None
    requests: int = 0
    #: A request of it is carried out.
    is_busy: bool = False
    #: The moment, on the monotonic clock, until which it is parked at most; None: without limit.
    deadline: float | None = None
    #: It waits in the poller.
    is_parked: bool = False

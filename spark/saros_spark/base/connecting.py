"""Open the connections that options describe, in each of Spark's processes: the planner, the tasks and the caller.

Only one process can open a data folder, and Spark has many processes. If the target is a folder, connections therefore
go to the server of this folder. Each process caches its connections, since a worker runs many tasks, and the server
must hash a password for each login.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

from saros_spark.base.errors import SourceError
from saros_spark.base.options import Connecting
from saros_wire.addresses import host_and_port

if TYPE_CHECKING:
    import saros
    from saros.base.target import Target
    from saros.transport.uploads import Uploads

#: The maximum number of cached connections. A worker connects to few databases, as few users, and with two values of
#: `failover_s`.
_CONNECTIONS_KEPT = 8
#: The number of seconds for which a call looks for a node that answers. This is longer than a cluster needs to elect
#: another leader.
FAILOVER_S = 30.0
#: The same limit for a call that may use another node. Even a busy node accepts a connection within this number of
#: seconds.
ELSEWHERE_S = 2.0


def connection_of(options: Connecting, failover_s: float | None = None) -> saros.Connection:
    """Return the process's cached connection. Raises SourceError (no server for the folder) and the driver's errors."""
    return _connection(options, os.getpid(), failover_s)


@lru_cache(_CONNECTIONS_KEPT)
def _connection(
    options: Connecting,
    process: int,  # noqa: ARG001 - a forked process needs connections of its own
    failover_s: float | None,
) -> saros.Connection:
    return connect(options, failover_s)


def connect(options: Connecting, failover_s: float | None = None) -> saros.Connection:
    """Return a new connection, which the caller closes. Raises the same errors as `connection_of`."""
    import saros

    return saros.connect(
        address_of(options.url),
        user=options.user,
        password=options.password,
        consistency=options.consistency,  # type: ignore[arg-type] # the driver checks it
        tls_ca=options.tls_ca,
        timestamps="epoch",
        time_zone="UTC",
        timeout=options.timeout_s,
        failover_s=FAILOVER_S if failover_s is None else failover_s,
    )


@contextmanager
def repeatable(options: Connecting, name: str) -> Iterator[saros.Connection]:
    """Yield a connection whose writes take effect only once, even if a later connection of the same name repeats them.

    The writes must be repeated in the same order. The server remembers the last `protocol.SEQUENCES_KEPT` writes.
    Raises the same errors as `connection_of`.
    """
    from saros.api.connection import Connection
    from saros.transport.remote import RemoteSession

    number = int.from_bytes(sha256(name.encode()).digest()[:8], "little")
    session = RemoteSession(_target_of(options), time_zone="UTC", failover_s=FAILOVER_S, client_id=number)
    with Connection(session, target=options.url, timestamps="epoch", timeout=options.timeout_s) as connection:
        yield connection


def at_node(options: Connecting, node: str | None) -> Connecting:
    """Return the options with `node` (host:port) as the target. If `node` is None, the driver chooses a node."""
    if node is None:
        return options
    found = re.sub(r"^(saros://(?:[^@/?#]*@)?)[^/?#]*", lambda match: match[1] + node, address_of(options.url))
    return replace(options, url=found)


@contextmanager
def uploads_to(options: Connecting, node: str | None = None) -> Iterator[Uploads]:
    """Yield an object that uploads files to a node, by default to the first node that answers.

    Raises the same errors as `connection_of`.
    """
    from saros.transport.uploads import Uploads

    uploads = Uploads(_target_of(at_node(options, node)))
    try:
        yield uploads
    finally:
        uploads.close()


def addresses_of(options: Connecting) -> tuple[str, ...]:
    """Return the address (host:port) of each node that the target names. Raises the same errors as `connection_of`."""
    return _target_of(options).addresses


def refuses(address: str) -> bool:
    """Return whether host:port refuses connections, because the process has ended; False for an unreachable node."""
    try:
        socket.create_connection(host_and_port(address), ELSEWHERE_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _target_of(options: Connecting) -> Target:
    """Return the target's nodes and login. Raises the same errors as `connection_of`."""
    from saros.base.target import parse_target

    target = parse_target(address_of(options.url))
    return target.override(
        user=options.user, password=options.password, consistency=options.consistency, tls_ca=options.tls_ca
    )


def address_of(url: str) -> str:
    """Return a `saros://` target unchanged, or the address of a data folder's server. Raises SourceError."""
    if "://" in url:
        return url
    from saros_server.process.server_file import serving

    found = serving(url)
    if found is None:
        raise SourceError(
            f"no server runs for the folder {url}, which Spark's processes cannot share; run `saros start --data"
            f' {url}`, or put the job into `with saros_spark.serving("{url}") as url:`'
        )
    return f"saros://{found.address}"

"""From options to a connection, in whichever process of Spark's asks: the planner's, a task's, the caller's.

A data folder belongs to one process, and Spark is many: a folder therefore means the server that serves it. Connections
are kept for the process, since workers run many tasks and each login costs the server a hash.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from saros_spark.errors import SourceError
from saros_spark.options import Connecting

if TYPE_CHECKING:
    import saros

#: A worker talks to few databases, or as few users.
_CONNECTIONS_KEPT = 4


def connection_of(options: Connecting) -> saros.Connection:
    """The process's connection. Raises SourceError (nobody serves the folder) and the driver's errors."""
    return _connection(options, os.getpid())


@lru_cache(_CONNECTIONS_KEPT)
def _connection(options: Connecting, process: int) -> saros.Connection:  # noqa: ARG001 - a fork needs its own
    return connect(options)


def connect(options: Connecting) -> saros.Connection:
    """A new connection, for who closes it. Raises as `connection_of`."""
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
    )


def address_of(url: str) -> str:
    """A target as it is; of a data folder, its server's. Raises SourceError."""
    if "://" in url:
        return url
    from saros_server.server import serving

    found = serving(url)
    if found is None:
        raise SourceError(
            f"nobody serves the folder {url}, and Spark's processes cannot share it: run `saros start --data {url}`,"
            f' or put the job into `with saros_spark.serving("{url}") as url:`'
        )
    return f"saros://{found.address}"

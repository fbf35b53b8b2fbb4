"""Read points: handles to snapshots that a node keeps, for use by other statements, connections and processes."""

from __future__ import annotations

import msgspec


class ReadPoint(msgspec.Struct, frozen=True):
    """A handle to a snapshot of the data. `Connection.hold` makes it, and `execute` takes it as `at`.

    It is a plain value, which may be pickled and used in other processes. The snapshot expires when nothing has read it
    for `lease_s` seconds.
    """

    name: str
    lease_s: float
    #: The node that keeps the snapshot, as host:port, or "" for an embedded database.
    address: str
    #: The id of the node's process. A node gets a new id when it restarts.
    instance: int

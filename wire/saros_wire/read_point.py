"""Read points: handles to snapshots that a node keeps, for use by other statements, connections and processes."""

from __future__ import annotations

import msgspec


class ReadPoint(msgspec.Struct, frozen=True):
    """A handle to a snapshot of the data, made by `Connection.hold`, to pass as `at` to `execute`.

    A plain value: it may be pickled and used in other processes. The snapshot expires when nothing has read it for
    `lease_s` seconds.
    """

    name: str
    lease_s: float
    #: The node that keeps the snapshot, as host:port; empty for an embedded database.
    address: str
    #: The id of the node's process; a restarted node has another one.
    instance: int

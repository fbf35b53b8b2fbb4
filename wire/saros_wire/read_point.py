"""A moment that a node keeps, as clients pass it on: to other statements, connections and processes. A value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """See `Connection.hold`. It goes by itself when nothing was read at it for `lease_s` seconds."""

    name: str
    lease_s: float
    #: host:port of the node that keeps it; empty: this process does.
    address: str
    #: Of the node's process.
    instance: int

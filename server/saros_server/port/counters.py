"""The counters that a port keeps for each protocol, and that the metrics report. Thread-safe."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from saros_server.port.client import Client, Stage


class ProtocolCounters(msgspec.Struct):
    """The counters of one protocol."""

    connections: int = 0
    #: The number of connections that wait for a request without occupying a thread.
    parked: int = 0
    accepted: int = 0
    refused: int = 0
    requests: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def add(self, client: Client) -> None:
        """Add the figures of a client's connection."""
        self.accepted += 1
        self.refused += client.is_refused
        self.requests += client.requests
        self.bytes_in += client.connection.bytes_in
        self.bytes_out += client.connection.bytes_out


def snapshot(closed: dict[str, ProtocolCounters], open_: Iterable[Client]) -> dict[str, ProtocolCounters]:
    """Return the counters of all protocols, which count both open and closed connections."""
    names = ProtocolCounters.__struct_fields__
    found = {
        protocol: ProtocolCounters(*(getattr(figures, name) for name in names)) for protocol, figures in closed.items()
    }
    for client in open_:
        figures = found.setdefault(client.protocol_name, ProtocolCounters())
        figures.connections += 1
        figures.parked += client.is_parked and client.stage is Stage.SERVED
        figures.add(client)
    return found

"""The native protocol on the port. Thread-safe."""

from __future__ import annotations

from saros_server.api.client_api import ClientApi
from saros_server.frames.frame_handler import FrameHandler, error_frame
from saros_server.port.connection import Connection
from saros_wire.frames import MAGIC


class FrameProtocol:
    """An implementation of `saros_server.port.protocols.Protocol` for the native protocol."""

    name = "native"

    def __init__(self, api: ClientApi) -> None:
        self._api = api

    def accepts(self, first: bytes) -> bool:
        """See `Protocol.accepts`. All versions begin with the same bytes; the handler checks the version."""
        return first.startswith(MAGIC)

    def open(self, connection: Connection) -> FrameHandler:
        """See `Protocol.open`."""
        return FrameHandler(self._api, connection)

    def refusal(self, code: int, message: str) -> bytes:
        """See `Protocol.refusal`."""
        return error_frame(0, code, message)

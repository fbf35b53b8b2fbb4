"""A node without a database, for tests of the driver's connections. The test decides how the node answers requests.

    with FakeNode(answer) as node: saros.connect(node.target)

`answer` is called with each `Request` on a thread of the request's connection, and sends frames with the methods of the
request. It is not called for the opening and closing of sessions.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from free_ports import HOST
from receiving import receive

from saros_wire import frames
from saros_wire.frames import Call, Header, Kind
from saros_wire.generated import client_pb2


@dataclass
class Request:
    """A request and its connection."""

    link: Link
    header: Header
    head: bytes
    body: bytes

    @property
    def call(self) -> Call:
        return Call(self.header.call)

    @property
    def message(self) -> bytes:
        """The message, which is the head without the prefix."""
        return self.head[frames.PREFIX_BYTES :]

    def reply(self, message: object = None, body: bytes = b"", *, more: bool = False) -> None:
        """Send a REPLY with a message."""
        head = b"" if message is None else message.SerializeToString()  # type: ignore[attr-defined]
        self.link.send(Kind.REPLY, self.header.request, head, body, frames.MORE if more else 0)

    def item(self, body: bytes) -> None:
        """Send an ITEM."""
        self.link.send(Kind.ITEM, self.header.request, b"", body)

    def end(self, head: bytes = b"") -> None:
        """Send an END."""
        self.link.send(Kind.END, self.header.request, head)

    def error(self, code: int, message: str = "words") -> None:
        """Send an ERROR."""
        reply = client_pb2.ErrorReply(code=code, message=message)
        self.link.send(Kind.ERROR, self.header.request, reply.SerializeToString())

    def control(self, kind: Kind, timeout_s: float = 60.0) -> bytes:
        """Wait for a CANCEL or CREDIT, and return its head."""
        found, head = self.link.controls.get(timeout=timeout_s)
        assert found is kind
        return head


@dataclass
class Link:
    """A connection of a client."""

    socket: socket.socket
    #: The received CANCEL and CREDIT frames.
    controls: queue.Queue[tuple[Kind, bytes]] = field(default_factory=queue.Queue)
    requests: queue.Queue[Request | None] = field(default_factory=queue.Queue)
    #: True if the node answers PING frames.
    pongs: bool = True
    #: The number of received PING frames.
    pings: int = 0
    #: False once the client has closed the connection.
    is_open: bool = True

    def send(self, kind: Kind, request: int, head: bytes = b"", body: bytes = b"", call: int = 0) -> None:
        """Send a frame."""
        self.socket.sendall(frames.encode_header(kind, request, len(head), len(body), call) + head + body)

    def close(self) -> None:
        """Close the connection, as happens when a node ends."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def read(self, count: int) -> bytes:
        """Read exactly `count` bytes. Raises EOFError, OSError."""
        data = receive(self.socket, count)
        if len(data) < count:
            raise EOFError
        return data

    def listen(self) -> None:
        """Receive frames until the connection ends."""
        try:
            assert frames.PREFACE == self.read(len(frames.PREFACE))
            while True:
                header = frames.decode_header(self.read(frames.HEADER_BYTES))
                head, body = self.read(header.head_bytes), self.read(header.body_bytes)
                match header.kind:
                    case Kind.REQUEST:
                        self.requests.put(Request(self, header, head, body))
                    case Kind.PING:
                        self.pings += 1
                        if self.pongs:
                            self.send(Kind.PONG, header.request)
                    case Kind.CANCEL | Kind.CREDIT:
                        self.controls.put((header.kind, head))
        except (EOFError, OSError):
            self.is_open = False
            self.requests.put(None)


class FakeNode:
    """A listening node. Use it as a context manager."""

    def __init__(self, answer: Callable[[Request], None], *, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._tls = tls
        self._listener = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self._listener.getsockname()[1]}"
        self.target = f"saros://{self.address}"
        self.open_reply = client_pb2.OpenReply(session=bytes(range(32)), time_unit="ms", memory=7)
        #: All requests in order of arrival.
        self.requests: list[Request] = []
        #: The accepted connections.
        self.links: list[Link] = []
        self._threads = [threading.Thread(target=self._accept)]

    def count(self, call: Call) -> int:
        """Return the number of requests of a kind."""
        return sum(request.call is call for request in self.requests)

    @property
    def is_connected(self) -> bool:
        """Return whether a client has an open connection."""
        return any(link.is_open for link in self.links)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, and close all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listener.close()
        for link in self.links:
            link.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connected, _ = self._listener.accept()
                if self._tls is not None:
                    connected = self._tls.wrap_socket(connected, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            link = Link(connected)
            self.links.append(link)
            for target in (link.listen, lambda link=link: self._serve(link)):
                self._threads.append(threading.Thread(target=target))
                self._threads[-1].start()

    def _serve(self, link: Link) -> None:
        while (request := link.requests.get()) is not None:
            self.requests.append(request)
            with suppress(OSError):  # the client has closed the connection
                match request.call:
                    case Call.OPEN:
                        request.reply(self.open_reply)
                    case Call.CLOSE:
                        request.reply()
                    case _:
                        self._answer(request)

"""A DNS server on a loopback port. It resolves a single name; tests may change the address of this name."""

from __future__ import annotations

import socket
import struct
import threading
from ipaddress import IPv4Address

_HEADER = struct.Struct(">6H")
_ANSWER, _A, _INTERNET = 0x8180, 1, 1
_NAME_IN_QUESTION = 0xC000 | _HEADER.size
_RECORD = struct.Struct(">3HIH4s")


class NameServer:
    """A server that answers each query for an IPv4 address with `address`, with a TTL of 0. Call `close` after use."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            question, asker = self._socket.recvfrom(4_096)
            if not question:
                return
            self._socket.sendto(self._answer(question), asker)

    def _answer(self, question: bytes) -> bytes:
        number, *_ = _HEADER.unpack_from(question)
        end = question.index(b"\0", _HEADER.size) + 5
        (kind,) = struct.unpack_from(">H", question, end - 4)
        record = b""
        if kind == _A:
            address = IPv4Address(self.address).packed
            record = _RECORD.pack(_NAME_IN_QUESTION, _A, _INTERNET, 0, len(address), address)
        head = _HEADER.pack(number, _ANSWER, 1, bool(record), 0, 0)
        return head + question[_HEADER.size : end] + record

    def close(self) -> None:
        """Stop the server."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waking:
            waking.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

"""A small client of IoTDB's session protocol. It can also send messages that a stock client never sends.

This module decodes TsBlocks in plain Python, value by value, following the description of the format.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from receiving import receive
from thrift.Thrift import TMessageType
from waiting import PATIENCE_S

from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.api.client_api import ClientApi
from saros_server.auth.passwords import Cost, hash_password
from saros_server.port.listener import PortListener
from saros_server.thrift import structs
from saros_server.thrift.codec import ApplicationError, FrameBuffer, encode
from saros_server.thrift.protocol import ThriftProtocol
from saros_server.thrift.structs import ExecuteAnswer, FetchAnswer, Status
from saros_storage.base.clock import Clock, SystemClock
from saros_storage.io.disk import LocalDisk

ROOT, ANN = "root-has-a-secret", "ann-has-a-secret"

_Answer = TypeVar("_Answer")


class ProtocolRefusal(Exception):
    """A `TApplicationException` received from the server."""

    def __init__(self, error: ApplicationError) -> None:
        super().__init__(error.message)
        self.kind = error.kind


class Failed(Exception):
    """A status other than success."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.code = status.code
        self.status = status


def message(name: str, arguments: bytes, number: int = 1, kind: int = TMessageType.CALL) -> bytes:
    """Return the encoded message, without a frame."""
    return struct.pack(">HHi", 0x8001, kind, len(name)) + name.encode() + struct.pack(">i", number) + arguments


def request_bytes(request: object, *, bare: bool = False) -> bytes:
    """Return the encoded arguments of a call."""
    return encode(request) if bare else b"\x0c\0\1" + encode(request) + b"\0"


class ThriftClient:
    """A connection, with the ids of its session and of its statement."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.number = self.session_id = self.statement_id = 0

    def __enter__(self) -> ThriftClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, data: bytes) -> None:
        self.send(struct.pack(">i", len(data)) + data)

    def receive_frame(self) -> bytes:
        head = receive(self.socket, 4)
        assert len(head) == 4, "the connection was closed"
        return receive(self.socket, *struct.unpack(">i", head))

    def is_closed(self) -> bool:
        """Wait until the server sends bytes or closes the connection; return whether it has closed the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def call(self, name: str, request: object, answer: type[_Answer], *, bare: bool = False) -> _Answer:
        """Call a method and return its answer. Raises ProtocolRefusal."""
        self.number += 1
        self.send_frame(message(name, request_bytes(request, bare=bare), self.number))
        return self.answer(name, answer)

    def answer(self, name: str, kind: type[_Answer]) -> _Answer:
        """Return the answer to the last call. Raises ProtocolRefusal."""
        frame = self.receive_frame()
        head = 8 + len(name) + 4
        assert name.encode() == frame[8 : head - 4]
        assert self.number == struct.unpack(">i", frame[head - 4 : head])[0]
        if frame[3] == TMessageType.EXCEPTION:
            raise ProtocolRefusal(decode(ApplicationError, frame[head:]))
        assert TMessageType.REPLY == frame[3]
        if kind is int:
            assert b"\x0a\0\0" == frame[head : head + 3]
            return struct.unpack(">q", frame[head + 3 : head + 11])[0]
        assert b"\x0c\0\0" == frame[head : head + 3]
        return decode(kind, frame[head + 3 :])

    # -------------------------------------------------------------------------------------- calls

    def open(self, user: str = "root", password: str = ROOT, **configuration: str) -> structs.OpenSessionAnswer:
        """Log in, and open a statement in the new session. Raises Failed."""
        request = structs.OpenSession(2, "UTC", user, password, configuration or None)
        opened = checked(self.call("openSession", request, structs.OpenSessionAnswer))
        self.session_id = opened.session_id or 0
        self.statement_id = self.call("requestStatementId", structs.SessionArguments(self.session_id), int, bare=True)
        return opened

    def execute(self, text: str, rows: int = 1_000, *, timeout_ms: int = 0, name: str = "executeStatementV2") -> Result:
        """Execute a statement. Raises Failed."""
        request = structs.ExecuteStatement(self.session_id, text, self.statement_id, rows, timeout_ms)
        return Result(self, checked(self.call(name, request, ExecuteAnswer)), rows)

    def fetch(self, query_id: int, rows: int) -> FetchAnswer:
        """Fetch the next page. Raises Failed."""
        request = structs.FetchResults(self.session_id, "", rows, query_id, True, 0, self.statement_id)
        return checked(self.call("fetchResultsV2", request, FetchAnswer))

    def done(self, name: str, request: object, *, bare: bool = False) -> None:
        """Call a method whose answer is a status, and check the status. Raises Failed."""
        checked(self.call(name, request, Status, bare=bare))


@dataclass
class Result:
    """The answer to a statement."""

    client: ThriftClient
    answer: ExecuteAnswer
    rows: int

    def pages(self) -> list[list[tuple[Any, ...]]]:
        """Return a list of rows for each page; a row is (time, values...), or only the values if times are ignored."""
        found = [self._rows(self.answer.blocks or [])]
        more = self.answer.more
        while more:
            page = self.client.fetch(self.answer.query_id, self.rows)
            found.append(self._rows(page.blocks or []))
            assert page.has_result == bool(found[-1])
            more = page.more
        return found

    def all(self) -> list[tuple[Any, ...]]:
        return [row for page in self.pages() for row in page]

    def _rows(self, blocks: list[bytes]) -> list[tuple[Any, ...]]:
        rows = [row for block in blocks for row in decode_block(block)]
        return [row[1:] for row in rows] if self.answer.ignore_time else rows


def checked(answer: Any) -> Any:
    status = answer if isinstance(answer, Status) else answer.status
    if status.code not in (200, 400):
        raise Failed(status)
    return answer


def decode(kind: type[_Answer], data: bytes) -> _Answer:
    frame = FrameBuffer(len(data))
    with frame.memory() as memory:
        memory[:] = data
    return frame.read_arguments(kind, bare=True)


def decode_block(data: bytes) -> list[tuple[Any, ...]]:
    """Return the rows of a TsBlock as (time, values...)."""
    reader = _Bytes(data)
    width = reader.take(">i")
    types = [reader.take(">b") for _ in range(width)]
    rows = reader.take(">i")
    encodings = [reader.take(">b") for _ in range(width + 1)]
    assert 2 == encodings[0]
    times = reader.column(2, 2, rows)
    columns = [reader.column(type_, encoding, rows) for type_, encoding in zip(types, encodings[1:], strict=True)]
    assert reader.at == len(data)
    return list(zip(times, *columns, strict=True))


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> Any:
        (found,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def bits(self, count: int) -> list[bool]:
        size = (count + 7) // 8
        packed = self.data[self.at : self.at + size]
        self.at += size
        return [bool(packed[place // 8] >> (7 - place % 8) & 1) for place in range(count)]

    def column(self, type_: int, encoding: int, rows: int) -> list[Any]:
        nulls = self.bits(rows) if self.take(">b") else [False] * rows
        if type_ == 0:
            assert 0 == encoding
            return [None if null else value for value, null in zip(self.bits(rows), nulls, strict=True)]
        form, expected = {1: (">i", 1), 2: (">q", 2), 3: (">f", 1), 4: (">d", 2), 5: ("", 3)}[type_]
        assert expected == encoding
        return [None if null else self.value(form) for null in nulls]

    def value(self, form: str) -> Any:
        if form:
            return self.take(form)
        size = self.take(">i")
        self.at += size
        return self.data[self.at - size : self.at]


class ThriftServer:
    """A client API with the users root (administrator) and ann, on a port that serves the protocol."""

    def __init__(
        self, folder: Path, *, authentication: bool = True, clock: Clock | None = None, options: str = ""
    ) -> None:
        (folder / "saros.toml").write_text(f'password_cost = 10\ndurability = "os"\n{options}')
        users = FileDirectory(str(folder), LocalDisk())
        users.change(CreateUser("root", hash_password(ROOT, Cost(10)), administrator=True))
        users.change(CreateUser("ann", hash_password(ANN, Cost(10))))
        self.folder = folder
        self.api = ClientApi(str(folder), clock or SystemClock(), authentication=authentication)
        self.listener = PortListener("127.0.0.1", 0, None, [ThriftProtocol(self.api)])
        self.listener.start()

    def connect(self) -> ThriftClient:
        return ThriftClient(self.listener.address)

    def close(self) -> None:
        self.listener.stop(PATIENCE_S)
        self.api.close()

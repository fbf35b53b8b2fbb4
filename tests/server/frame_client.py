"""A small blocking client of the native protocol. It can also send messages that a driver never sends."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from receiving import receive
from waiting import PATIENCE_S

from saros_wire import payload
from saros_wire.frames import (
    HEADER_BYTES,
    MORE,
    NO_TOKEN,
    NO_WAIT_LIMIT,
    PREFACE,
    Call,
    Kind,
    decode_header,
    encode_credit,
    encode_header,
    encode_prefix,
)
from saros_wire.generated import client_pb2


@dataclass(frozen=True)
class Frame:
    """A frame received from the node."""

    kind: Kind
    request: int
    has_more: bool
    head: bytes
    body: bytes

    @property
    def error(self) -> client_pb2.ErrorReply:
        assert self.kind is Kind.ERROR, self
        return client_pb2.ErrorReply.FromString(self.head)


class Refused(Exception):
    """An ERROR received from the node."""

    def __init__(self, reply: client_pb2.ErrorReply) -> None:
        super().__init__(f"{reply.code}: {reply.message}")
        self.code, self.reply = reply.code, reply


class FrameClient:
    """A connection. Its calls are made in the session with the token `token`."""

    def __init__(
        self,
        address: str,
        *,
        preface: bytes = PREFACE,
        tls: ssl.SSLContext | None = None,
        receive_bytes: int = 0,
        source: str = "",
    ) -> None:
        """Connect to `address`, from the local address `source`, or from any local address if `source` is empty."""
        if address.startswith("unix-abstract:"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(PATIENCE_S)
            self.socket.connect("\0" + address.removeprefix("unix-abstract:"))
        else:
            host, _, port = address.rpartition(":")
            self.socket = socket.socket()
            if receive_bytes:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.settimeout(PATIENCE_S)
            if source:
                self.socket.bind((source, 0))
            self.socket.connect((host, int(port)))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.token = NO_TOKEN
        self.numbers = 0
        self.socket.sendall(preface)

    def __enter__(self) -> FrameClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # ------------------------------------------------------------------------------------------ frames

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(self, call: int, message: Any = None, body: bytes = b"", wait_ms: int = NO_WAIT_LIMIT) -> int:
        """Send a request, and return its number."""
        self.numbers += 1
        self.send(self.encoded(self.numbers, call, message, body, wait_ms))
        return self.numbers

    def encoded(
        self, number: int, call: int, message: Any = None, body: bytes = b"", wait_ms: int = NO_WAIT_LIMIT
    ) -> bytes:
        encoded = b"" if message is None else message.SerializeToString()
        head = encode_prefix(self.token, wait_ms) + encoded
        return encode_header(Kind.REQUEST, number, len(head), len(body), call) + head + body

    def cancel(self, number: int) -> None:
        self.send(encode_header(Kind.CANCEL, number))

    def credit(self, number: int, count: int) -> None:
        head = encode_credit(count)
        self.send(encode_header(Kind.CREDIT, number, len(head)) + head)

    def ping(self, number: int) -> None:
        self.send(encode_header(Kind.PING, number))

    def receive(self) -> Frame | None:
        """Return the next frame, or None if the node has closed the connection."""
        data = receive(self.socket, HEADER_BYTES)
        if not data:
            return None
        header = decode_header(data)
        sizes = header.head_bytes, header.body_bytes
        head, body = (receive(self.socket, size) for size in sizes)
        assert sizes == (len(head), len(body)), "half a frame"
        return Frame(header.kind, header.request, header.call == MORE, head, body)

    # ------------------------------------------------------------------------------------------ calls

    def call(self, call: int, message: Any = None, body: bytes = b"") -> Frame:
        """Make a call that has a single answer, and return the answer."""
        number = self.request(call, message, body)
        frame = self.reply(number)
        assert not frame.has_more
        return frame

    def reply(self, number: int) -> Frame:
        """Return the REPLY to a request. Raises Refused."""
        frame = self.receive()
        assert frame is not None, "the connection was closed"
        assert frame.request in (number, 0), frame
        if frame.kind is Kind.ERROR:
            raise Refused(frame.error)
        assert frame.kind is Kind.REPLY, frame
        return frame

    def items(self, number: int) -> Iterator[bytes]:
        """Yield the items of a stream, and grant credits so that the node sends further items. Raises Refused."""
        while True:
            frame = self.receive()
            assert frame is not None, "the connection was closed"
            assert frame.request == number, frame
            if frame.kind is Kind.ERROR:
                raise Refused(frame.error)
            if frame.kind is Kind.END:
                return
            assert frame.kind is Kind.ITEM, frame
            self.credit(number, len(frame.body))
            yield frame.body

    def open(self, user: str = "", password: str = "") -> client_pb2.OpenReply:
        """Open the session that later calls use."""
        reply = self.call(Call.OPEN, client_pb2.OpenRequest(user=user, password=password))
        opened = client_pb2.OpenReply.FromString(reply.head)
        self.token = opened.session
        return opened

    def execute(self, statement: str) -> pa.Table | int:
        """Execute a statement. Return its rows, or its count if it returns no rows."""
        number = self.request(Call.EXECUTE, client_pb2.ExecuteRequest(statement=statement))
        frame = self.reply(number)
        answer = client_pb2.Answer.FromString(frame.head)
        if not answer.head.schema:
            return answer.head.update_count
        schema = pa.ipc.read_schema(pa.py_buffer(answer.head.schema))
        messages, start = [], 0
        for size in answer.batch_bytes:
            messages.append(frame.body[start : start + size])
            start += size
        assert start == len(frame.body)
        if frame.has_more:
            messages += self.items(number)
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(m), schema) for m in messages], schema)

    def insert(self, body: bytes) -> client_pb2.InsertReply:
        return client_pb2.InsertReply.FromString(self.call(Call.INSERT, body=body).head)


def columns(device: str, times: list[int], sequence: int = 0, **values: Any) -> bytes:
    """Return the body of an INSERT."""
    batch = pa.record_batch([pa.array(times, pa.int64()), *map(pa.array, values.values())], names=["", *values])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return payload.encode_insert_head(device.encode(), sequence, aligned=None) + bytes(sink.getvalue())

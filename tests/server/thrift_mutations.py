"""Pass damaged messages of IoTDB's session protocol to the server's side of a connection.

A message is a call of a stock client in which bytes are changed, lost, duplicated or moved, or lengths or types are
replaced. The server must answer the message or end the connection; it must raise no other exception, and log no
internal error. Not thread-safe.
"""

from __future__ import annotations

import dataclasses
import inspect
import random
import struct
import typing
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from server.thrift_client import message, request_bytes

from saros_server.api.calls import Peer
from saros_server.api.client_api import ClientApi
from saros_server.port.connection import ConnectionClosed
from saros_server.thrift import structs
from saros_server.thrift.methods import METHODS
from saros_server.thrift.protocol import ThriftHandler

#: Numbers that break careless code.
NUMBERS = [-1, 0, 1, 2, 127, 128, 255, 256, 65_535, 1 << 20, (1 << 24) - 1, 1 << 26, (1 << 31) - 1, -(1 << 31)]
#: The maximum total size of the answers to one call; larger answers would mean that the server leaks data.
ANSWER_BYTES_MAX = 64 << 20


class FakeConnection:
    """A connection whose client has sent some bytes and waits. It has only the methods that a handler calls."""

    def __init__(self, data: bytes) -> None:
        self.peer = Peer("ipv4:127.0.0.1", is_local=True)
        self._data, self._at = data, 0
        self.sent: list[bytes] = []

    def read(self, count: int) -> memoryview:
        if count > len(self._data) - self._at:
            raise ConnectionClosed("the client has closed the connection")
        self._at += count
        return memoryview(self._data)[self._at - count : self._at]

    def read_into(self, view: memoryview) -> None:
        view[:] = self.read(len(view))

    @property
    def buffered(self) -> memoryview:
        return memoryview(self._data)[self._at :]

    def pull(self, bytes_max: int) -> bool:
        return False

    def send(self, buffers: Sequence[bytes | memoryview]) -> None:
        self.sent += map(bytes, buffers)

    def watch(self, on_readable: Callable[[], None], on_closed: Callable[[], None]) -> AbstractContextManager[None]:
        return nullcontext()


class Mutations:
    """A source of damaged calls, drawn from a seed, for a client API that requires no login."""

    def __init__(self, api: ClientApi, seed: int) -> None:
        self._api, self._random = api, random.Random(seed)
        self._login = structs.OpenSession(2, "UTC")
        self._calls = [self._call(name) for name in METHODS if name != "closeSession"]

    def run_one(self) -> str:
        """Pass a damaged call to a new connection, and return the call's outcome. Raises any forbidden exception."""
        frame = self._damaged(self._random.choice(self._calls))
        login = _framed(message("openSession", request_bytes(self._login)))
        connection = FakeConnection(login + frame)
        handler = ThriftHandler(self._api, typing.cast("typing.Any", connection))
        try:
            if self._random.random() < 0.9:
                assert handler.handle()
                assert handler.session.is_open
            else:
                connection.read(len(login))
            connection.sent.clear()
            goes_on = handler.handle()
        except ConnectionClosed:
            return "closed by the client"
        finally:
            handler.close()
        answer = b"".join(connection.sent)
        assert len(answer) < ANSWER_BYTES_MAX
        if goes_on and answer:
            assert len(answer) == 4 + struct.unpack_from(">i", answer)[0]
            return {2: "answered", 3: "refused"}[answer[7]]
        return "goes on" if goes_on else "ended"

    def _call(self, name: str) -> bytes:
        """Return a call whose arguments have the right types."""
        method = METHODS[name]
        values = {
            field.name: self._value(hint, field.name)
            for field, hint in zip(dataclasses.fields(method.arguments), _hints(method.arguments).values(), strict=True)
        }
        return message(name, request_bytes(method.arguments(**values), bare=method.bare))

    def _value(self, hint: typing.Any, name: str) -> typing.Any:
        """Return a value that has the type of the field."""
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        match typing.get_origin(hint):
            case typing.Annotated:
                return self._value(parts[0], name)
            case origin if origin is list:
                return [self._value(parts[0], name) for _ in range(2)]
            case origin if origin is dict:
                return {"k": self._value(parts[1], name)}
            case None:
                pass
            case _:  # X | None
                return self._value(parts[0], name)
        if hint is str:
            texts = {"statement": "show version", "statements": "show version", "device": "root.m.d"}
            return texts.get(name, "root.m.d.s" if "path" in name else "s")
        if hint is bytes:
            return struct.pack(">q", 1) * 2 if name == "times" else b"\2" + struct.pack(">q", 7) * 2
        return {"rows": 2, "types": 2, "aligned": False}.get(name, 1)

    def _damaged(self, call: bytes) -> bytes:
        data = bytearray(call)
        for _ in range(self._random.choice((1, 1, 2, 5))):
            self._damage(data)
        if self._random.random() < 0.9:
            return _framed(bytes(data))
        return struct.pack(">i", self._random.choice((*NUMBERS, len(data) + 1, len(data) - 1))) + data

    def _damage(self, data: bytearray) -> None:
        chance = self._random
        at = chance.randrange(len(data) + 1)
        length = chance.choice((1, 2, 4, 8, 40))
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length]
            case 3:
                data[at:at] = chance.randbytes(length)
            case 4:
                data[at : at + 4] = struct.pack(">i", chance.choice(NUMBERS))
            case _:
                del data[at:]


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _hints(struct_: type) -> dict[str, typing.Any]:
    return typing.get_type_hints(struct_, vars(inspect.getmodule(struct_)), include_extras=True)

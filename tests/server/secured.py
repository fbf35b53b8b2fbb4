"""A server with users, calls to it as bare gRPC requests, and session tokens that no call may be made with."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import grpc
import pyarrow as pa
from manual_clock import ManualClock
from waiting import PATIENCE_S

import saros
from saros_cluster.users.commands import CreateUser, DropUser, SetPassword
from saros_cluster.users.directory import FileDirectory
from saros_server.api import client_sessions
from saros_server.auth.passwords import Cost, hash_password
from saros_server.auth.security import Security
from saros_server.grpc.rpcs import STREAMS, UNARY
from saros_server.server import Server
from saros_storage.io.disk import LocalDisk
from saros_wire import payload, protocol
from saros_wire.generated import client_pb2

#: The calls that need a session: all but those that anyone may make, and the one whose parts have sessions.
SESSION_CALLS = sorted({*UNARY, *STREAMS} - {protocol.OPEN, protocol.PING, protocol.INSERT_TOGETHER})
CHEAP = Cost(10)
ROOT, ANN = "root-has-a-secret", "ann-has-a-secret"
SECOND = 1_000_000_000


def raw_call(address: str, name: str, request: bytes, token: bytes | None) -> bytes:
    """One call by its bytes; of a stream, the first message."""
    metadata = () if token is None else ((protocol.SESSION_KEY, token),)
    with grpc.insecure_channel(address) as channel:
        if name in protocol.STREAMS:
            return next(channel.unary_stream(protocol.path_of(name))(request, metadata=metadata, timeout=PATIENCE_S))
        answer: bytes = channel.unary_unary(protocol.path_of(name))(request, metadata=metadata, timeout=PATIENCE_S)
        return answer


class Secured:
    """A server with users root (administrator) and ann, and a clock that stands."""

    def __init__(self, folder: Path, security: Security | None = None, host: str = "127.0.0.1") -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "saros.toml").write_text('password_cost = 10\ndurability = "os"\n')
        directory = FileDirectory(str(folder), LocalDisk())
        directory.change(CreateUser("root", hash_password(ROOT, CHEAP), administrator=True))
        directory.change(CreateUser("ann", hash_password(ANN, CHEAP)))
        self.clock = ManualClock()
        self.server = Server(str(folder), host, 0, clock=self.clock, security=security)
        self.server.start()
        found = self.server.api.node.directory
        assert found is not None
        self.directory = found

    def open(self, user: str, password: str) -> bytes:
        request = client_pb2.OpenRequest(protocol=protocol.PROTOCOL, user=user, password=password)
        return client_pb2.OpenReply.FromString(self.call(protocol.OPEN, request.SerializeToString())).session

    def call(self, name: str, request: bytes, token: bytes | None = None, address: str | None = None) -> bytes:
        return raw_call(address or self.server.address, name, request, token)

    def connect(self, user: str, password: str) -> saros.Connection:
        return saros.connect(f"saros://{self.server.address}", user=user, password=password, timestamps="epoch")

    def trail(self) -> list[dict[str, object]]:
        files = sorted((self.folder / "audit").glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def code_of(error: grpc.RpcError) -> int:
    return int(dict(error.trailing_metadata())[protocol.CODE_KEY])


def request_of(name: str, token: bytes | None = None) -> bytes:
    """A request that the call would carry out."""
    if name in (protocol.EXECUTE, protocol.ASK):
        return client_pb2.ExecuteRequest(statement="create database root.proof").SerializeToString()
    if name == protocol.INSERT_TOGETHER:
        part = client_pb2.InsertPart(session=token or b"", columns=request_of(protocol.INSERT))
        return client_pb2.InsertTogetherRequest(parts=[part]).SerializeToString()
    if name == protocol.INSERT:
        metadata = {payload.DEVICE_KEY: b"root.proof.d", payload.ALIGNED_KEY: b"none"}
        batch = pa.record_batch([pa.array([1]), pa.array([1.0])], names=["", "s"]).replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue().to_pybytes())
    return b""


# ---------------------------------------------------------------------------------------------- tokens of no session


def no_token(_: Secured) -> bytes | None:
    return None


def random_token(_: Secured) -> bytes:
    return os.urandom(32)


def idle(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    secured.clock.ns += (client_sessions.IDLE_SECONDS + 1) * SECOND
    return token


def old(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    for _ in range(client_sessions.LIFE_SECONDS // client_sessions.IDLE_SECONDS + 1):
        secured.clock.ns += client_sessions.IDLE_SECONDS * SECOND
        for client in secured.server.api._services.sessions._clients.values():
            client.used_ns = secured.clock.ns
    return token


def elsewhere(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    secured.server.api._services.sessions._clients[token].host = "ipv4:192.0.2.1"
    return token


def with_a_new_password(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    secured.directory.change(SetPassword("root", hash_password(ROOT, CHEAP)))
    return token


def dropped(secured: Secured) -> bytes:
    """The user is dropped, and made again; each time another one."""
    name = f"boss{os.urandom(4).hex()}"
    secured.directory.change(CreateUser(name, hash_password(ROOT, CHEAP), administrator=True))
    token = secured.open(name, ROOT)
    secured.directory.change(DropUser(name))
    secured.directory.change(CreateUser(name, hash_password(ROOT, CHEAP), administrator=True))
    return token


def closed(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    secured.call(protocol.CLOSE, b"", token)
    return token


BAD_TOKENS: tuple[Callable[[Secured], bytes | None], ...] = (
    no_token,
    random_token,
    idle,
    old,
    elsewhere,
    with_a_new_password,
    dropped,
    closed,
)

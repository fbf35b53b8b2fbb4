"""A server with users, functions that make single calls to the server, and session tokens that every call refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from google.protobuf.message import Message
from manual_clock import ManualClock
from server.frame_client import FrameClient, columns

import saros
from saros_cluster.users.commands import CreateUser, DropUser, SetPassword
from saros_cluster.users.directory import FileDirectory
from saros_server.api import client_sessions
from saros_server.auth.passwords import Cost, hash_password
from saros_server.auth.security import Security
from saros_server.server import Server
from saros_storage.io.disk import LocalDisk
from saros_wire.frames import NO_TOKEN, Call
from saros_wire.generated import client_pb2

#: The calls that need a session: all calls except the public ones.
SESSION_CALLS = sorted(set(Call) - {Call.OPEN, Call.PING})
CHEAP = Cost(10)
ROOT, ANN = "root-has-a-secret", "ann-has-a-secret"
SECOND = 1_000_000_000
#: A query whose result has more rows than a node buffers for a client, so the query runs until its rows are read.
LARGE = f"select {', '.join(f'x + {i}' for i in range(24))} from root.a.d"


def raw_call(address: str, call: Call, message: Message | None, token: bytes | None = None, body: bytes = b"") -> bytes:
    """Make one call on a new connection. Return the head of the answer, or the first item if it is a stream."""
    with FrameClient(address) as client:
        client.token = NO_TOKEN if token is None else token
        frame = client.reply(number := client.request(call, message, body))
        return next(client.items(number)) if frame.has_more and call is not Call.EXECUTE else frame.head


class Secured:
    """A server whose users are root (administrator) and ann, and whose clock does not advance by itself."""

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
        request = client_pb2.OpenRequest(user=user, password=password)
        return client_pb2.OpenReply.FromString(self.call(Call.OPEN, request)).session

    def call(self, call: Call, message: Message | None = None, token: bytes | None = None, body: bytes = b"") -> bytes:
        return raw_call(self.server.address, call, message, token, body)

    def try_call(self, call: Call, token: bytes | None) -> bytes:
        """Make a call that the node would execute if the session had the necessary rights."""
        message, body = request_of(call)
        return self.call(call, message, token, body)

    def connect(self, user: str, password: str) -> saros.Connection:
        return saros.connect(f"saros://{self.server.address}", user=user, password=password, timestamps="epoch")

    def trail(self) -> list[dict[str, object]]:
        files = sorted((self.folder / "audit").glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]


def request_of(call: Call) -> tuple[Message | None, bytes]:
    """Return the message and the body of a request that the node would execute."""
    match call:
        case Call.EXECUTE:
            return client_pb2.ExecuteRequest(statement="create database root.proof"), b""
        case Call.INSERT:
            return None, columns("root.proof.d", [1], s=[1.0])
        case _:
            return None, b""


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
    """Return the token of a user that was dropped and created again after the login. Each call makes a new user."""
    name = f"boss{os.urandom(4).hex()}"
    secured.directory.change(CreateUser(name, hash_password(ROOT, CHEAP), administrator=True))
    token = secured.open(name, ROOT)
    secured.directory.change(DropUser(name))
    secured.directory.change(CreateUser(name, hash_password(ROOT, CHEAP), administrator=True))
    return token


def closed(secured: Secured) -> bytes:
    token = secured.open("root", ROOT)
    secured.call(Call.CLOSE, token=token)
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

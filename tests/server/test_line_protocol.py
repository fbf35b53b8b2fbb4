"""A second protocol, which shows that the client API suffices to implement a protocol (docs/protocols.md)."""

from __future__ import annotations

import ast
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from server import line_protocol
from server.frame_client import FrameClient
from server.line_protocol import LineProtocol
from server.secured import ANN, CHEAP, LARGE, ROOT
from waiting import PATIENCE_S, wait_until

from saros_cluster.users.commands import CreateUser
from saros_cluster.users.directory import FileDirectory
from saros_server.api.client_api import ClientApi
from saros_server.auth.passwords import hash_password
from saros_server.frames.frame_protocol import FrameProtocol
from saros_server.port.listener import PortListener
from saros_storage.base.clock import SystemClock
from saros_storage.io.disk import LocalDisk

ROWS = 100_000


class Client:
    """A connection that sends lines."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # the server must wait for the client
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect((host, int(port)))
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def send(self, line: str) -> None:
        self.socket.sendall(f"{line}\n".encode())

    def ask(self, line: str) -> list[str]:
        """Send a line, and return the lines of the answer."""
        self.send(line)
        return self.rest()

    def rest(self) -> list[str]:
        lines = [self.lines.readline().rstrip("\n")]
        while lines[-1] != "END" and not lines[-1].startswith(("OK", "ERR ")):
            assert lines[-1], "the connection was closed"
            lines.append(self.lines.readline().rstrip("\n"))
        return lines

    def close(self) -> None:
        self.lines.close()
        self.socket.close()


def insert_rows(api: ClientApi) -> None:
    """Insert data so that the result of `LARGE` is about 40 MB of text, which exceeds the sockets' buffers."""
    values = np.random.default_rng(1).random(ROWS)
    api._own.insert("root.a.d", np.arange(ROWS), {"x": values}, aligned=None)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ClientApi]:
    (tmp_path / "saros.toml").write_text('password_cost = 10\ndurability = "os"\n')
    users = FileDirectory(str(tmp_path), LocalDisk())
    users.change(CreateUser("root", hash_password(ROOT, CHEAP), administrator=True))
    users.change(CreateUser("ann", hash_password(ANN, CHEAP)))
    made = ClientApi(str(tmp_path), SystemClock(), authentication=True)
    yield made
    made.close()


@pytest.fixture
def listener(api: ClientApi) -> Iterator[PortListener]:
    made = PortListener("127.0.0.1", 0, None, [FrameProtocol(api), LineProtocol(api)])
    made.start()
    yield made
    made.stop(PATIENCE_S)


@pytest.fixture
def client(listener: PortListener) -> Iterator[Client]:
    made = Client(listener.address)
    yield made
    made.close()


def test_the_protocol_uses_the_client_api_and_the_port_alone() -> None:
    source = Path(line_protocol.__file__).read_text()
    modules = [node.module or "" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    ours = {module for module in modules if module.startswith("saros")}
    assert {"saros_server.api", "saros_server.port"} == {".".join(module.split(".")[:2]) for module in ours}


def test_a_client_logs_in_inserts_and_queries(client: Client, api: ClientApi) -> None:
    assert ["OK"] == client.ask(f"LOGIN root {ROOT}")
    assert ["OK 1"] == client.ask("SQL create database root.a")
    assert ["OK 2"] == client.ask("INSERT root.a.d 1 x=1.5 y=2")
    assert ["OK 1"] == client.ask("INSERT root.a.d 2 x=2.5")
    header, row, end = client.ask("SQL select count(x), sum(x), sum(y) from root.a.d")
    assert ('"count(root.a.d.x)","sum(root.a.d.x)","sum(root.a.d.y)"', "2,4,2", "END") == (header, row, end)
    assert 1 == api.sessions
    client.send("QUIT")
    assert "" == client.lines.readline()
    wait_until(lambda: api.sessions == 0)


def test_a_client_without_a_session_is_refused(client: Client, api: ClientApi) -> None:
    for line in ("SQL create database root.a", "INSERT root.a.d 1 x=1.5"):
        (answer,) = client.ask(line)
        assert answer.startswith("ERR 2014 no such session")
    (answer,) = client.ask("LOGIN root wrong")
    assert answer.startswith("ERR 801 ")
    (answer,) = client.ask("SQL create database root.a")
    assert answer.startswith("ERR 2014 no such session")
    assert [] == api.node.store.schema.databases()


def test_errors_come_with_their_codes(client: Client) -> None:
    assert ["OK"] == client.ask(f"LOGIN ann {ANN}")
    for line, code in (
        ("SQL selec", 700),
        ("SQL create database root.a", 803),
        ("INSERT root.a.d 1 x=1.5", 803),
        ("INSERT root.a.d soon x=1.5", 2003),
        ("HELLO", 2003),
    ):
        (answer,) = client.ask(line)
        assert (line, f"ERR {code} ") == (line, answer[: len(f"ERR {code} ")])


def test_a_large_result_comes_whole_and_can_be_cancelled(client: Client, api: ClientApi) -> None:
    client.ask(f"LOGIN root {ROOT}")
    insert_rows(api)
    lines = client.ask("SQL select x from root.a.d")
    assert (ROWS + 2, "END") == (len(lines), lines[-1])
    client.send(f"SQL {LARGE}")
    assert client.lines.readline().startswith('"Time",')
    client.send("CANCEL")
    wait_until(lambda: api.node.engine.open_queries == 0)
    *rows, end = client.rest()
    assert len(rows) < ROWS
    assert end.startswith("ERR 715 ")
    assert ["OK 1"] == client.ask("INSERT root.a.d 1 y=1")


def test_a_client_that_goes_away_ends_its_query_and_its_session(client: Client, api: ClientApi) -> None:
    client.ask(f"LOGIN root {ROOT}")
    insert_rows(api)
    client.send(f"SQL {LARGE}")
    assert client.lines.readline().startswith('"Time",')
    client.close()
    wait_until(lambda: (api.node.engine.open_queries, api.sessions) == (0, 0))


def test_two_protocols_serve_the_same_node_on_one_port(client: Client, listener: PortListener, api: ClientApi) -> None:
    client.ask(f"LOGIN root {ROOT}")
    client.ask("INSERT root.a.d 7 x=1.5")
    with FrameClient(listener.address) as native:
        native.open("root", ROOT)
        table = native.execute("select x from root.a.d")
        assert isinstance(table, pa.Table)
        assert [1.5] == table.column(1).to_pylist()
        assert 2 == api.sessions

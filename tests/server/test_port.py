"""The port: it detects protocols, enforces limits, parks idle clients, drains, uses TLS, and survives bad clients."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import numpy as np
import pytest
from receiving import receive
from self_signed import self_signed
from waiting import PATIENCE_S, wait_equal, wait_until

from saros_server.config.configuration import ConfigurationError
from saros_server.pki.certificate_files import WatchedFiles
from saros_server.port import connection as connection_module
from saros_server.port import listener as listener_module
from saros_server.port.client import UNKNOWN
from saros_server.port.connection import Connection, ConnectionClosed
from saros_server.port.limits import Limits
from saros_server.port.listener import PortListener

LENGTH = struct.Struct(">I")
MEGABYTES = b"x" * (24 << 20)


class EchoProtocol:
    """A protocol whose connections begin with `ECHO`. A request has a length and bytes, which the server sends back."""

    name = "echo"

    def __init__(self) -> None:
        self.handlers: list[EchoHandler] = []
        #: A `wait` request waits until this event is set.
        self.go_on = threading.Event()
        #: The events that were reported to the watch's callbacks during a `wait` request.
        self.told: list[str] = []

    def accepts(self, first: bytes) -> bool:
        return first.startswith(b"ECHO")

    def open(self, connection: Connection) -> EchoHandler:
        handler = EchoHandler(self, connection)
        self.handlers.append(handler)
        return handler

    def refusal(self, code: int, message: str) -> bytes:
        return f"{code} {message}".encode()


class EchoHandler:
    def __init__(self, protocol: EchoProtocol, connection: Connection) -> None:
        self.protocol, self.connection = protocol, connection
        self.is_greeted = False
        self.is_closed = False

    def handle(self) -> bool:
        if not self.is_greeted:
            assert b"ECHO" == self.connection.read(4)
            self.is_greeted = True
        (length,) = LENGTH.unpack(self.connection.read(LENGTH.size))
        body = self.connection.read_buffer(length)
        if body == b"wait":
            with self.connection.watch(self.look, self.lose):
                self.protocol.go_on.wait(PATIENCE_S)
        if body == b"bug":
            raise ZeroDivisionError
        if body == b"much":
            body = memoryview(MEGABYTES)
        self.connection.send([LENGTH.pack(len(body)), body])
        return bytes(body) != b"bye"

    def look(self) -> None:
        self.connection.pull(1 << 16)
        self.protocol.told.append(bytes(self.connection.buffered).decode())

    def lose(self) -> None:
        self.protocol.told.append("closed")

    def close(self) -> None:
        self.is_closed = True


class EchoClient:
    def __init__(self, address: str, greeting: bytes = b"ECHO", tls: ssl.SSLContext | None = None) -> None:
        self.socket = connect(address)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
            _opened.append(self.socket)
        if greeting:
            self.socket.sendall(greeting)

    def send(self, data: bytes) -> None:
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def receive(self) -> bytes:
        (length,) = LENGTH.unpack(exactly(self.socket, LENGTH.size))
        return exactly(self.socket, length)

    def ask(self, data: bytes) -> bytes:
        self.send(data)
        return self.receive()

    def is_ended(self) -> bool:
        """Wait until the node sends bytes or closes the connection; return whether it has closed the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()


#: The sockets that the running test has opened.
_opened: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    for plain in _opened:
        plain.close()
    _opened.clear()


def connect(address: str, *, receive_bytes: int = 0) -> socket.socket:
    if address.startswith("unix-abstract:"):
        made = socket.socket(socket.AF_UNIX)
        _opened.append(made)
        made.settimeout(PATIENCE_S)
        made.connect("\0" + address.removeprefix("unix-abstract:"))
        return made
    host, _, port = address.rpartition(":")
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    _opened.append(made)
    if receive_bytes:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    made.settimeout(PATIENCE_S)
    made.connect((host.strip("[]"), int(port)))
    return made


def exactly(plain: socket.socket, count: int) -> bytes:
    received = receive(plain, count)
    assert len(received) == count, "the connection was closed"
    return received


def everything(plain: socket.socket) -> bytes:
    received = bytearray()
    while found := plain.recv(1 << 16):
        received += found
    return bytes(received)


@pytest.fixture
def echo() -> EchoProtocol:
    return EchoProtocol()


@pytest.fixture
def listen(echo: EchoProtocol) -> Iterator[Callable[..., PortListener]]:
    """Return a function that creates a port with the protocol `echo`, and starts it."""
    with ExitStack() as made:

        def start(certificate: WatchedFiles | None = None, host: str = "127.0.0.1", **limits: float) -> PortListener:
            listener = PortListener(host, 0, certificate, [echo], Limits(**limits))  # type: ignore[arg-type]
            made.callback(listener.stop, 0.0)
            listener.start()
            return listener

        yield start
        echo.go_on.set()


def client_threads() -> int:
    return sum(thread.name.startswith("saros-client") for thread in threading.enumerate())


# ---------------------------------------------------------------------------------------------- requests


def test_requests_of_all_sizes_are_answered(listen: Callable[..., PortListener]) -> None:
    client = EchoClient(listen().address)
    for size in (0, 1, 65_531, 65_532, 65_533, 65_536, 200_000, 5_000_000):
        data = os.urandom(size)
        client.socket.sendall(LENGTH.pack(size)[:2])
        client.socket.sendall(LENGTH.pack(size)[2:] + data)
        assert data == client.receive()
    client.close()


def test_requests_that_come_together_are_answered_in_order(listen: Callable[..., PortListener]) -> None:
    client = EchoClient(listen().address)
    texts = [str(number).encode() for number in range(1_000)]
    client.socket.sendall(b"".join(LENGTH.pack(len(text)) + text for text in texts))
    assert texts == [client.receive() for _ in texts]
    client.close()


def test_a_protocol_is_told_by_bytes_that_come_one_by_one(listen: Callable[..., PortListener]) -> None:
    client = EchoClient(listen().address, greeting=b"")
    for number in b"ECHO\0\0\0\1x":
        client.socket.send(bytes((number,)))
    assert b"x" == client.receive()
    client.close()


def test_a_handler_ends_its_connection_and_is_closed_once(
    listen: Callable[..., PortListener], echo: EchoProtocol
) -> None:
    listener = listen()
    client = EchoClient(listener.address)
    client.send(b"bye")
    client.send(b"more")  # the server does not read these bytes
    assert b"bye" == client.receive()
    assert client.is_ended()
    client.close()
    wait_equal([True], lambda: [handler.is_closed for handler in echo.handlers])
    wait_equal(0, lambda: listener.counters()["echo"].connections)


def test_a_failing_protocol_ends_only_its_connection(
    listen: Callable[..., PortListener], echo: EchoProtocol, caplog: pytest.LogCaptureFixture
) -> None:
    listener = listen()
    client, other = EchoClient(listener.address), EchoClient(listener.address)
    client.send(b"bug")
    assert client.is_ended()
    assert b"x" == other.ask(b"x")
    assert ["a protocol failed"] == [record.getMessage() for record in caplog.records]
    wait_equal([False, True], lambda: sorted(handler.is_closed for handler in echo.handlers))
    assert b"y" == other.ask(b"y")
    client.close()
    other.close()


def test_clients_that_go_away_are_forgotten_and_not_logged(
    listen: Callable[..., PortListener], echo: EchoProtocol, caplog: pytest.LogCaptureFixture
) -> None:
    listener = listen()
    for words in (b"", b"EC", b"ECHO", b"ECHO\0\0", b"ECHO\0\0\0\4wa", b"ECHO\0\0\0\2ab"):
        plain = connect(listener.address)
        plain.sendall(words)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # `close` resets the connection
        plain.close()
        EchoClient(listener.address, words).close()
    wait_until(lambda: sum(found.connections for found in listener.counters().values()) == 0)
    assert all(handler.is_closed for handler in echo.handlers)
    assert [] == caplog.records


# ---------------------------------------------------------------------------------------------- long calls


def test_the_client_of_a_long_call_is_heard(listen: Callable[..., PortListener], echo: EchoProtocol) -> None:
    client = EchoClient(listen().address)
    client.send(b"wait")
    client.send(b"hello")
    wait_equal("hello", lambda: echo.told[-1][4:] if echo.told else None)
    client.send(b"and more")
    wait_until(lambda: echo.told[-1].endswith("and more"))
    echo.go_on.set()
    assert [b"wait", b"hello", b"and more"] == [client.receive() for _ in range(3)]
    assert b"x" == client.ask(b"x")
    client.close()


def test_the_end_of_the_client_of_a_long_call_is_noticed(
    listen: Callable[..., PortListener], echo: EchoProtocol
) -> None:
    client = EchoClient(listen().address)
    client.send(b"wait")
    client.close()
    wait_until(lambda: "closed" in echo.told)
    echo.go_on.set()
    wait_until(lambda: echo.handlers[0].is_closed)


# ---------------------------------------------------------------------------------------------- parking, limits


def test_silent_clients_cost_no_threads(listen: Callable[..., PortListener]) -> None:
    listener = listen()
    clients = [EchoClient(listener.address) for _ in range(500)]
    assert [b"x"] * 500 == [client.ask(b"x") for client in clients]
    wait_equal(500, lambda: listener.counters()["echo"].parked)
    assert all(client.connection._view.nbytes == 0 for client in listener._clients)
    assert client_threads() <= 256
    assert [b"y"] * 500 == [client.ask(b"y") for client in clients]
    for client in clients:
        client.close()


def test_more_busy_clients_than_workers_are_all_served(listen: Callable[..., PortListener]) -> None:
    listener = listen(workers=2)
    clients = [EchoClient(listener.address) for _ in range(20)]
    for number in range(50):
        for client in clients:
            client.send(b"a%d" % number)
            client.send(b"b%d" % number)
        for client in clients:
            assert (b"a%d" % number, b"b%d" % number) == (client.receive(), client.receive())
    for client in clients:
        client.close()


def test_a_client_above_the_limit_is_told_so(listen: Callable[..., PortListener]) -> None:
    listener = listen(connections=2)
    first, second = EchoClient(listener.address), EchoClient(listener.address)
    assert b"xx" == first.ask(b"x") + second.ask(b"x")
    third = connect(listener.address)
    third.sendall(b"ECHO")
    assert b"2034 this node has 2 connections, the maximum: close some" == everything(third)
    third.close()
    first.close()
    wait_until(lambda: listener.counters()["echo"].connections == 1)
    fourth = EchoClient(listener.address)
    assert b"x" == fourth.ask(b"x")
    assert 1 == listener.counters()["echo"].refused
    second.close()
    fourth.close()


def test_an_address_above_its_limit_is_told_so(listen: Callable[..., PortListener]) -> None:
    listener = listen(connections_per_address=1)
    first = EchoClient(listener.address)
    assert b"x" == first.ask(b"x")
    second = connect(listener.address)
    second.sendall(b"ECHO")
    assert everything(second).startswith(b"2034 this node has 1 connections from this address")
    other = socket.create_connection(
        ("127.0.0.1", int(listener.address.rpartition(":")[2])), source_address=("127.0.0.2", 0)
    )
    other.sendall(b"ECHO\0\0\0\1x")
    assert b"\0\0\0\1x" == exactly(other, 5)
    for plain in (first, second, other):
        plain.close()


def test_a_client_that_says_nothing_is_closed(listen: Callable[..., PortListener]) -> None:
    listener = listen(greeting_s=0.05)
    for words in (b"", b"EC"):
        plain = connect(listener.address)
        plain.sendall(words)
        assert b"" == everything(plain)
        plain.close()
    wait_equal(2, lambda: listener.counters()[UNKNOWN].refused)


def test_a_request_that_comes_too_slowly_ends_the_connection(
    listen: Callable[..., PortListener], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = EchoClient(listen().address)
    assert b"x" == client.ask(b"x")
    monkeypatch.setattr(connection_module, "REQUEST_SECONDS", 0.0)
    client.socket.sendall(LENGTH.pack(100))
    assert client.is_ended()
    client.close()


def test_a_slow_request_gives_way_to_clients_that_wait(
    listen: Callable[..., PortListener], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "CROWDED_SECONDS", 0.0)
    listener = listen(workers=1)
    slow = EchoClient(listener.address)
    slow.socket.sendall(LENGTH.pack(100))
    wait_until(lambda: "echo" in listener.counters())
    client = EchoClient(listener.address)
    assert b"x" == client.ask(b"x")
    assert slow.is_ended()
    slow.close()
    client.close()


def test_a_client_that_does_not_read_is_closed(
    listen: Callable[..., PortListener], echo: EchoProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "SEND_SECONDS", 0.1)
    listener = listen()
    plain = connect(listener.address, receive_bytes=1 << 12)
    plain.sendall(b"ECHO" + LENGTH.pack(4) + b"much")
    wait_until(lambda: echo.handlers and echo.handlers[0].is_closed)
    plain.close()


# ---------------------------------------------------------------------------------------------- the end


def test_stopping_ends_silent_clients_and_lets_calls_end(
    listen: Callable[..., PortListener], echo: EchoProtocol
) -> None:
    listener = listen()
    silent, parked, busy = (EchoClient(listener.address) for _ in range(3))
    assert b"xx" == silent.ask(b"x") + parked.ask(b"x")
    busy.send(b"wait")
    busy.send(b"later")
    wait_until(lambda: echo.told)
    stopping = threading.Thread(target=listener.stop, args=(PATIENCE_S,))
    stopping.start()
    assert silent.is_ended()
    assert parked.is_ended()
    host, _, port = listener.address.rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    echo.go_on.set()
    assert b"wait" == busy.receive()
    assert busy.is_ended()
    stopping.join()
    assert all(handler.is_closed for handler in echo.handlers)
    for client in (silent, parked, busy):
        client.close()


def test_stopping_cancels_calls_that_last_longer(listen: Callable[..., PortListener], echo: EchoProtocol) -> None:
    listener = listen()
    client = EchoClient(listener.address)
    client.send(b"wait")
    wait_until(lambda: listener.counters().get("echo") and listener.counters()["echo"].requests)
    stopping = threading.Thread(target=listener.stop, args=(0.0,))
    stopping.start()
    wait_equal(["closed"], lambda: echo.told[-1:])
    echo.go_on.set()
    stopping.join()
    assert client.is_ended()
    client.close()


def test_stopping_leaves_calls_that_cannot_be_ended_to_the_end_of_the_node(
    listen: Callable[..., PortListener],
    echo: EchoProtocol,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(listener_module, "ABORT_SECONDS", 0.0)
    listener = listen()
    client = EchoClient(listener.address)
    client.send(b"wait")
    wait_until(lambda: listener.counters().get("echo") and listener.counters()["echo"].requests)
    listener.stop(0.0)
    assert ["calls are still running"] == [record.getMessage() for record in caplog.records]
    echo.go_on.set()
    wait_until(lambda: echo.handlers[0].is_closed)
    wait_equal(0, lambda: listener.counters()["echo"].connections)


# ---------------------------------------------------------------------------------------------- other protocols


def test_an_old_driver_is_told_to_be_replaced(listen: Callable[..., PortListener]) -> None:
    with grpc.insecure_channel(listen().address) as channel:
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/saros.client.v1.Client/Open")(b"x" * 100_000, timeout=PATIENCE_S)
    assert "this node speaks protocol 7, not gRPC: use a newer driver" == caught.value.details()
    assert "2015" == dict(caught.value.trailing_metadata())["saros-code"]


def test_http_is_answered_in_http(listen: Callable[..., PortListener]) -> None:
    plain = connect(listen().address)
    plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    answer = everything(plain)
    plain.close()
    assert b"HTTP/1.1 400 Bad Request" == answer.split(b"\r\n")[0]
    assert answer.endswith(b"not HTTP: see docs/clients.md\n")


def test_tls_at_a_port_without_is_answered_by_an_alert(listen: Callable[..., PortListener]) -> None:
    context = ssl.create_default_context()
    plain = connect(listen().address)
    with pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
        context.wrap_socket(plain, server_hostname="127.0.0.1")
    plain.close()


def test_garbage_is_closed(listen: Callable[..., PortListener]) -> None:
    listener = listen()
    plain = connect(listener.address)
    plain.sendall(b"\xff" * 100)
    assert b"" == everything(plain)
    plain.close()
    wait_equal(1, lambda: listener.counters()[UNKNOWN].refused)


# ---------------------------------------------------------------------------------------------- TLS, addresses


@pytest.fixture
def certificate(tmp_path: Path) -> WatchedFiles:
    key, certificate = self_signed(tmp_path)
    return WatchedFiles((str(certificate), str(key)))


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "certificate.pem"))


def test_clients_speak_tls_where_there_is_a_certificate(
    listen: Callable[..., PortListener], certificate: WatchedFiles, echo: EchoProtocol, tmp_path: Path
) -> None:
    listener = listen(certificate)
    clients = [EchoClient(listener.address, tls=trusting(tmp_path)) for _ in range(20)]
    data = os.urandom(3_000_000)
    for client in clients[:3]:
        assert (data, b"x") == (client.ask(data), client.ask(b"x"))
    wait_equal(3, lambda: listener.counters()["echo"].parked)
    assert [b"y"] * 20 == [client.ask(b"y") for client in clients]
    clients[0].send(b"wait")
    clients[0].send(b"hello")
    wait_equal("hello", lambda: echo.told[-1][4:] if echo.told else None)
    echo.go_on.set()
    assert [b"wait", b"hello"] == [clients[0].receive() for _ in range(2)]
    for client in clients:
        client.close()


def test_this_machine_reaches_a_port_with_tls_without(
    listen: Callable[..., PortListener], certificate: WatchedFiles, echo: EchoProtocol
) -> None:
    listener = listen(certificate)
    client = EchoClient(listener.local_address)
    assert b"x" == client.ask(b"x")
    assert ("unix", True) == (echo.handlers[0].connection.peer.host, echo.handlers[0].connection.peer.is_local)
    client.close()


def test_a_client_without_tls_is_told_to_use_it(listen: Callable[..., PortListener], certificate: WatchedFiles) -> None:
    listener = listen(certificate)
    for first, start in (
        (b"ECHO\0\0\0\1x", b"2015 this port takes TLS only"),
        (b"GET / HTTP/1.1\r\n", b"HTTP/1.1 400"),
    ):
        plain = connect(listener.address)
        plain.sendall(first)
        assert everything(plain).startswith(start)
        plain.close()


def test_an_old_driver_with_tls_is_told_to_be_replaced(
    listen: Callable[..., PortListener], certificate: WatchedFiles, tmp_path: Path
) -> None:
    credentials = grpc.ssl_channel_credentials((tmp_path / "certificate.pem").read_bytes())
    with grpc.secure_channel(listen(certificate).address, credentials) as channel, pytest.raises(grpc.RpcError) as got:
        channel.unary_unary("/saros.client.v1.Client/Open")(b"", timeout=PATIENCE_S)
    assert "this node speaks protocol 7, not gRPC: use a newer driver" == got.value.details()


def test_a_handshake_that_does_not_go_on_is_ended(
    listen: Callable[..., PortListener], certificate: WatchedFiles
) -> None:
    listener = listen(certificate, greeting_s=0.1)
    for words in (b"", b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01\x00\x05hello"):
        plain = connect(listener.address)
        plain.sendall(words)
        everything(plain)
        plain.close()
    wait_until(lambda: sum(found.connections for found in listener.counters().values()) == 0)


def test_a_new_certificate_is_shown_to_new_clients(
    listen: Callable[..., PortListener], certificate: WatchedFiles, tmp_path: Path
) -> None:
    listener = listen(certificate)
    old = EchoClient(listener.address, tls=trusting(tmp_path))
    assert b"x" == old.ask(b"x")
    newer = tmp_path / "newer"
    newer.mkdir()
    self_signed(newer)
    for name in ("key.pem", "certificate.pem"):
        (newer / name).rename(tmp_path / name)
    new = EchoClient(listener.address, tls=trusting(tmp_path))
    assert b"xy" == new.ask(b"x") + old.ask(b"y")
    old.close()
    new.close()


def test_a_port_that_is_taken_says_so(listen: Callable[..., PortListener], echo: EchoProtocol) -> None:
    port = int(listen().address.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{port}: another process uses the port"):
        PortListener("127.0.0.1", port, None, [echo])


@pytest.mark.parametrize("host", ["localhost", "::1", "[::1]", "0.0.0.0", "::"])
def test_hosts_are_listened_on_by_name_and_by_address(listen: Callable[..., PortListener], host: str) -> None:
    if ":" in host and not socket.has_ipv6:
        pytest.skip("there is no IPv6")
    listener = listen(host=host)
    port = listener.address.rpartition(":")[2]
    client = EchoClient(f"{'::1' if '1' in host else '127.0.0.1'}:{port}")
    assert b"x" == client.ask(b"x")
    client.close()


def test_items_of_buffers_need_not_be_bytes() -> None:
    ours, theirs = socket.socketpair()
    made = Connection(ours, None, None, lambda: False)  # type: ignore[arg-type]
    numbers = np.arange(3.0)
    made.send([b"x", numbers.data, memoryview(b"y")])
    assert b"x" + numbers.tobytes() + b"y" == theirs.recv(100)
    assert 26 == made.bytes_out
    theirs.close()
    made.close()


def test_a_connection_that_is_closed_reads_and_sends_nothing() -> None:
    ours, theirs = socket.socketpair()
    made = Connection(ours, None, None, lambda: False)  # type: ignore[arg-type]
    theirs.close()
    with pytest.raises(ConnectionClosed):
        made.read(1)
    with pytest.raises(ConnectionClosed):
        made.send([b"x"])
    made.close()

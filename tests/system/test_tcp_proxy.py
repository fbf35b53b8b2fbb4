"""The proxy in front of an echo server: each mode has the effect of its name, and only in its direction."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from receiving import receive
from system.tcp_proxy import FAIR, HOST, Mode, TcpProxy, Weather, running_proxy
from waiting import PATIENCE_S, wait_until

HOLD, LOSE, REFUSE = Weather(Mode.HOLD), Weather(Mode.LOSE), Weather(Mode.REFUSE)
#: The time for which a test waits for bytes that must not arrive.
QUIET_SECONDS = 0.1


class Echo:
    """A server that echoes every connection, and records the received bytes and the end of the connection."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.received = b""
        self.arrived = threading.Condition()
        self.ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        try:
            while data := connection.recv(1 << 16):
                with self.arrived:
                    self.received += data
                    self.arrived.notify_all()
                connection.sendall(data)
        except OSError:
            return
        finally:
            self.ended.set()
            connection.close()

    def wait_for(self, data: bytes) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: data in self.received, PATIENCE_S)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # already closed
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    with running_proxy() as made:
        yield made


@pytest.fixture
def client(proxy: TcpProxy, echo: Echo) -> Iterator[socket.socket]:
    """Yield a client of link "a" that has received one answer."""
    port = proxy.add_link("a", HOST, echo.port)
    with socket.create_connection((HOST, port), timeout=PATIENCE_S) as made:
        made.sendall(b"hello")
        assert b"hello" == take(made, 5)
        yield made


def take(client: socket.socket, count: int) -> bytes:
    client.settimeout(PATIENCE_S)
    return receive(client, count)


def is_quiet(client: socket.socket) -> bool:
    client.settimeout(QUIET_SECONDS)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    return False


def is_over(client: socket.socket) -> bool:
    client.settimeout(PATIENCE_S)
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_much_passes_in_both_directions(client: socket.socket) -> None:
    data = bytes(range(256)) * 20_000
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    assert data == take(client, len(data))
    sender.join()


def test_a_delay_is_kept_and_so_is_the_order(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.set_weather("a", forth=Weather(delay_s=0.1), back=Weather(delay_s=0.05))
    client.sendall(b"one")
    proxy.set_weather("a", forth=FAIR, back=FAIR)
    client.sendall(b"two")
    assert b"onetwo" == take(client, 6)
    proxy.set_weather("a", forth=Weather(delay_s=0.1), back=Weather(delay_s=0.05))
    started = time.monotonic()
    client.sendall(b"x")
    assert b"x" == take(client, 1)
    assert 0.15 <= time.monotonic() - started


def test_a_line_lets_no_more_through_than_it_is_ordered_to(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.set_weather("a", back=Weather(bytes_per_second=1_000_000))
    started = time.monotonic()
    client.sendall(bytes(200_000))
    assert bytes(200_000) == take(client, 200_000)
    assert 0.2 <= time.monotonic() - started


def test_what_is_held_comes_later(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.set_weather("a", back=HOLD)
    client.sendall(b"wait")
    assert is_quiet(client)
    proxy.set_weather("a", back=FAIR)
    assert b"wait" == take(client, 4)


def test_one_way_loss_lets_the_other_way_pass(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    proxy.set_weather("a", back=LOSE)
    client.sendall(b"asked")
    echo.wait_for(b"asked")
    assert is_quiet(client)


def test_a_connection_with_a_hole_does_not_outlive_the_cut(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    proxy.set_weather("a", forth=LOSE, back=LOSE)
    client.sendall(b"lost")
    (connection,) = proxy._links["a"].connections
    wait_until(lambda: connection.has_hole)
    assert is_quiet(client)
    proxy.set_weather("a", forth=FAIR, back=FAIR)
    assert is_over(client)
    assert b"hello" == echo.received


def test_a_connection_that_lost_nothing_outlives_a_cut(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.set_weather("a", forth=LOSE, back=LOSE)
    proxy.set_weather("a", forth=FAIR, back=FAIR)
    client.sendall(b"on")
    assert b"on" == take(client, 2)


def test_a_link_that_is_down_ends_connections_and_takes_none(proxy: TcpProxy, client: socket.socket) -> None:
    port = client.getpeername()[1]
    proxy.set_weather("a", forth=REFUSE)
    assert is_over(client)
    with socket.create_connection((HOST, port)) as late:
        assert is_over(late)
    proxy.set_weather("a", forth=FAIR)
    with socket.create_connection((HOST, port)) as again:
        again.sendall(b"back")
        assert b"back" == take(again, 4)


def test_a_direction_can_be_closed_alone(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    proxy.half_close("a", forth=False)
    assert b"" == take(client, 1)
    for data in (b"still there", b"and again"):
        client.sendall(data)
        echo.wait_for(data)
    assert not echo.ended.is_set()
    assert 1 == proxy.connections("a")
    proxy.half_close("a", forth=True)
    assert echo.ended.wait(60)


def test_bytes_are_changed(proxy: TcpProxy, client: socket.socket) -> None:
    proxy.set_weather("a", back=Weather(corruption=1.0))
    client.sendall(b"abcdef")
    found = take(client, 6)
    assert 1 == sum(a != b for a, b in zip(b"abcdef", found, strict=True))


def test_links_have_weathers_of_their_own(proxy: TcpProxy, echo: Echo, client: socket.socket) -> None:
    other = proxy.add_link("b", HOST, echo.port)
    proxy.set_weather("a", forth=LOSE, back=LOSE)
    with socket.create_connection((HOST, other)) as second:
        second.sendall(b"fair")
        assert b"fair" == take(second, 4)


def test_without_a_target_a_client_is_turned_away(proxy: TcpProxy, echo: Echo) -> None:
    port = proxy.add_link("a", HOST, echo.port)
    echo.close()
    with socket.create_connection((HOST, port)) as client:
        assert is_over(client)


def test_closing_frees_the_port(echo: Echo) -> None:
    with running_proxy() as proxy:
        port = proxy.add_link("a", HOST, echo.port)
        client = socket.create_connection((HOST, port))
        client.sendall(b"x")
        take(client, 1)
        proxy.set_weather("a", forth=HOLD, back=HOLD)
    assert is_over(client)
    client.close()
    proxy.close()
    with running_proxy() as again:
        assert port == again.add_link("a", HOST, echo.port, listen_port=port)

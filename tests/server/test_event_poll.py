"""The two implementations that wait for sockets behave alike."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator

import pytest

from saros_server.port.event_poll import (
    EDGE,
    GONE,
    ONCE,
    READABLE,
    EventfdWaker,
    PortablePoll,
    PortableWaker,
)

Poll = PortablePoll | select.epoll


@pytest.fixture(params=[select.epoll, PortablePoll])
def poll(request: pytest.FixtureRequest) -> Iterator[Poll]:
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def test_one_event_until_modified(poll: Poll, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poll.register(near.fileno(), READABLE | ONCE)
    assert [] == poll.poll(0)
    far.send(b"a")
    assert [near.fileno()] == [fd for fd, _ in poll.poll(5)]
    assert [] == poll.poll(0)
    poll.modify(near.fileno(), READABLE | ONCE)
    assert [near.fileno()] == [fd for fd, _ in poll.poll(5)]


def test_the_end_is_an_event_of_its_own(poll: Poll, pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    poll.register(near.fileno(), READABLE | GONE | EDGE)
    far.send(b"a")
    ((_, events),) = poll.poll(5)
    assert (READABLE, 0) == (events & READABLE, events & GONE)
    far.close()
    ((_, events),) = poll.poll(5)
    assert events & GONE


def test_a_socket_that_is_registered_while_a_thread_waits_is_noticed(
    poll: Poll, pair: tuple[socket.socket, socket.socket]
) -> None:
    near, far = pair
    far.send(b"a")
    found: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: found.extend(poll.poll(30)))
    thread.start()
    poll.register(near.fileno(), READABLE)
    thread.join()
    assert [(near.fileno(), READABLE)] == found


def test_a_closed_socket_is_forgotten(poll: Poll) -> None:
    near, far = socket.socketpair()
    poll.register(near.fileno(), READABLE)
    near.close()
    far.close()
    assert [] == poll.poll(0)
    near, far = socket.socketpair()  # the new pair very likely has the same descriptors
    with near, far:
        poll.register(near.fileno(), READABLE)
        far.send(b"a")
        assert [(near.fileno(), READABLE)] == poll.poll(5)
        poll.unregister(near.fileno())
        with pytest.raises(FileNotFoundError):
            poll.unregister(near.fileno())


@pytest.mark.parametrize("kind", [EventfdWaker, PortableWaker])
def test_a_waker_is_readable_until_drained(kind: type[EventfdWaker] | type[PortableWaker]) -> None:
    waker = kind()
    try:
        for _ in range(100_000 if kind is PortableWaker else 2):  # more bytes than a pipe holds
            waker.wake()
        assert [waker.fd] == select.select([waker.fd], [], [], 5)[0]
        waker.drain()
        assert [] == select.select([waker.fd], [], [], 0)[0]
    finally:
        waker.close()

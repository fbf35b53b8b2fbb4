"""Parts of responses that threads send: completely and in order, but without waiting for slow clients."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest
from waiting import PATIENCE_S, wait_until

from saros_server.http import direct_writer
from saros_server.http.body import ClientGone
from saros_server.http.direct_writer import DirectWriter, Frames, send_directly
from saros_server.http.limits import HttpLimits
from saros_server.http.request import HttpRequest
from saros_server.http.response import Chunks, Response
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession

from .http_node import serving

MEBIBYTE = 1 << 20
CHUNK = bytes(range(256)) * 4_096


class Connection(asyncio.Transport):
    """A transport that has only a socket."""

    def __init__(self, own: socket.socket) -> None:
        own.setblocking(False)
        super().__init__({"socket": own})


@pytest.fixture
def ends() -> Iterator[tuple[DirectWriter, socket.socket]]:
    """Yield a writer to one end of a connection, and the other end."""
    ours, theirs = socket.socketpair()
    writer = DirectWriter(Connection(ours))
    with ours, theirs:
        yield writer, theirs
        writer.close()


def received(theirs: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        found += theirs.recv(MEBIBYTE)
    return bytes(found)


def test_frames_are_chunks_in_the_encoding_of_http() -> None:
    frames = Frames(iter([b"", b"abc", (b"de", b"", memoryview(b"f" * 14)), ()]))
    assert [b"3\r\n", b"abc", b"\r\n"] == [*frames.next()]
    assert b"10\r\nde" + b"f" * 14 + b"\r\n" == b"".join(frames.next())
    assert (19, 0) == (frames.count(), frames.count())
    assert [] == [*frames.next()] == [*frames.next()]


def test_the_rest_is_returned_if_the_client_takes_no_more(
    ends: tuple[DirectWriter, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_writer, "SEND_S", 0.01)
    writer, theirs = ends
    buffers = [b"%04d" % number * 1_250 for number in range(2_000)]
    rest = writer.send(buffers)
    taken = sum(map(len, buffers)) - sum(map(len, rest))
    assert 0 < taken < sum(map(len, buffers))
    assert b"".join(buffers) == received(theirs, taken) + b"".join(rest)


def test_all_chunks_are_sent_to_a_client_that_reads(ends: tuple[DirectWriter, socket.socket]) -> None:
    writer, theirs = ends
    found: list[bytes] = []
    frames = Frames(iter([CHUNK] * 9))
    size = 9 * len(b"100000\r\n" + CHUNK + b"\r\n")
    reader = threading.Thread(target=lambda: found.append(received(theirs, size)))
    reader.start()
    assert [] == [*send_directly(frames.next(), frames, writer)]
    reader.join(PATIENCE_S)
    assert [(b"100000\r\n" + CHUNK + b"\r\n") * 9] == found


def test_a_lost_or_closed_connection_ends_the_response(ends: tuple[DirectWriter, socket.socket]) -> None:
    writer, theirs = ends
    theirs.close()
    with pytest.raises(ClientGone):
        writer.send([CHUNK])
    writer.close()
    with pytest.raises(ClientGone):
        writer.send([CHUNK])


def test_closing_while_a_thread_sends_closes_the_duplicate(
    ends: tuple[DirectWriter, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_writer, "SEND_S", PATIENCE_S)
    writer, theirs = ends
    outcome: list[type] = []

    def send() -> None:
        try:
            writer.send([CHUNK] * 50)
        except ClientGone as error:
            outcome.append(type(error))

    sender = threading.Thread(target=send)
    sender.start()
    theirs.recv(1)
    writer.close()
    theirs.setblocking(False)
    wait_until(lambda: _drained(theirs, sender))
    assert [ClientGone] == outcome
    assert -1 == writer._socket.fileno()


def _drained(theirs: socket.socket, sender: threading.Thread) -> bool:
    """Read what has arrived; return whether the sender has ended."""
    with suppress(BlockingIOError):
        theirs.recv(MEBIBYTE)
    return not sender.is_alive()


# ------------------------------------------------------------------ a service


def _numbers(_: HttpRequest, __: HttpSession) -> Response:
    return Response(Chunks((b"%08d" % number * MEBIBYTE for number in range(8)), lambda: None))


def _ping(_: HttpRequest, __: HttpSession) -> Response:
    return Response(b"pong")


ROUTES = (Route("GET", "/numbers", Policy.PUBLIC, _numbers), Route("GET", "/ping", Policy.PUBLIC, _ping))


def test_a_client_that_does_not_read_occupies_no_thread_and_gets_all_bytes(tmp_path: Path) -> None:
    with (
        serving(tmp_path, ROUTES, HttpLimits(workers=1)) as node,
        httpx.stream("GET", f"{node.url}/numbers", timeout=PATIENCE_S) as slow,
    ):
        assert b"pong" == node.client.get("/ping").content
        body = b"".join(slow.iter_bytes())
    assert b"".join(b"%08d" % number * MEBIBYTE for number in range(8)) == body


def test_responses_of_one_connection_follow_each_other(tmp_path: Path) -> None:
    expected = [b"".join(b"%08d" % number * MEBIBYTE for number in range(8)), b"pong"] * 3
    with serving(tmp_path, ROUTES) as node, closing(httpx.Client(base_url=node.url, timeout=PATIENCE_S)) as client:
        assert expected == [client.get(path).content for path in ("/numbers", "/ping") * 3]

"""Clients that are slow, send too much, or go away; TLS; the end of the service."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from self_signed import self_signed
from server.http.http_node import HttpNode, http_server, serving
from waiting import PATIENCE_S, wait_until

from saros_server.auth.security import Security
from saros_server.http.limits import HttpLimits
from saros_server.http.request import HttpRequest
from saros_server.http.response import Chunk, Chunks, Response, buffers_of
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession
from saros_server.pki.certificate_files import CertificateFiles, WatchedFiles

QUICK = HttpLimits(header_s=0.2, body_s=0.2, write_s=0.2, header_bytes=4_000, connections=20)


def _echo(request: HttpRequest, _: HttpSession) -> Response:
    return Response(request.body())


def _endless() -> Iterator[bytes]:
    while True:
        yield bytes(1 << 16)


CLOSED = threading.Event()


def _stream(_: HttpRequest, __: HttpSession) -> Response:
    return Response(Chunks(_endless(), CLOSED.set))


#: The chunks of a body. A chunk has one or several buffers, and each buffer is empty, small, or larger than a single
#: write.
CHUNKS: list[Chunk] = [
    b"first",
    b"",
    (b"head", memoryview(bytes(range(256)) * 3_000), b"", b"\0" * 5, memoryview(b"x" * 300_000), b"tail"),
    (),
    tuple(bytes((number,)) * 50_000 for number in range(20)),
    memoryview(b"y" * 262_144),
]


def _parts(_: HttpRequest, __: HttpSession) -> Response:
    return Response(Chunks(iter(CHUNKS), lambda: None))


ROUTES = (
    Route("POST", "/echo", Policy.PUBLIC, _echo),
    Route("GET", "/endless", Policy.PUBLIC, _stream),
    Route("GET", "/parts", Policy.PUBLIC, _parts),
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpNode]:
    with serving(tmp_path_factory.mktemp("connections"), ROUTES, QUICK) as made:
        yield made


def exchange(node: HttpNode, sent: bytes) -> bytes:
    """Send bytes, and return all bytes received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", node.service.port), PATIENCE_S) as client:
        client.sendall(sent)
        received = b""
        with suppress(ConnectionResetError):
            while part := client.recv(1 << 16):
                received += part
    return received


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET /echo HTTP/1.1\r\nHost: a\r\n"])
def test_headers_that_do_not_come_end_the_connection(node: HttpNode, sent: bytes) -> None:
    assert b"" == exchange(node, sent)


def test_a_body_that_does_not_come_is_refused(node: HttpNode) -> None:
    answer = exchange(node, b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 408 "), answer


def test_a_client_that_asks_first_is_told_to_send_its_body(node: HttpNode) -> None:
    head = (
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\nExpect: 100-continue\r\n"
    )
    with (
        socket.create_connection(("127.0.0.1", node.service.port), PATIENCE_S) as client,
        client.makefile("rb") as file,
    ):
        client.sendall(head + b"\r\n")
        assert [b"HTTP/1.1 100 Continue\r\n", b"\r\n"] == [file.readline(), file.readline()]
        client.sendall(b"hello")
        assert file.read().endswith(b"\r\n\r\nhello")


def test_large_bodies_sent_without_waiting_for_answers_are_answered_in_order(node: HttpNode) -> None:
    bodies = [bytes((97 + number,)) * 300_000 for number in range(4)]
    heads = [b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n"] * 4
    heads[3] = heads[3].replace(b"Host", b"Connection: close\r\nHost")
    answers = exchange(node, b"".join(part for pair in zip(heads, bodies, strict=True) for part in pair))
    assert bodies == [answer.partition(b"\r\n\r\n")[2] for answer in answers.split(b"HTTP/1.1 200 OK")[1:]]


def test_a_refused_request_closes_the_connection_only_if_its_body_is_not_read(node: HttpNode) -> None:
    refused = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\nabc"
    last = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    answers = exchange(node, refused % 3 + last)
    assert [b"404 Not Found", b"200 OK"] == re.findall(rb"HTTP/1.1 (.*)\r\n", answers)
    answers = exchange(node, refused % 10)
    assert [b"404 Not Found"] == re.findall(rb"HTTP/1.1 (.*)\r\n", answers)
    assert b"connection: close\r\n" in answers


def test_a_body_whose_client_goes_takes_no_memory(node: HttpNode) -> None:
    memory = node.service._application._bodies
    with socket.create_connection(("127.0.0.1", node.service.port), PATIENCE_S) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        wait_until(lambda: memory.bytes == 5)
    wait_until(lambda: memory.bytes == 0)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /echo HTTP/1.1\r\n" + b"X-A: b\r\n" * 1_000,
        b"GET /" + b"a" * 10_000,
        b"GET /echo HTTP/1.1\r\nX-A: " + b"a" * 10_000,
    ],
)
def test_headers_that_are_too_large_are_refused(node: HttpNode, sent: bytes) -> None:
    assert exchange(node, sent).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(node: HttpNode, sent: bytes) -> None:
    answer = exchange(node, sent)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer


def test_a_client_that_reads_nothing_is_disconnected(node: HttpNode) -> None:
    CLOSED.clear()
    with socket.create_connection(("127.0.0.1", node.service.port), PATIENCE_S) as client:
        client.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert CLOSED.wait(PATIENCE_S)


def test_chunks_of_several_buffers_arrive_in_their_order(node: HttpNode) -> None:
    expected = b"".join(buffer for chunk in CHUNKS for buffer in buffers_of(chunk))
    for _ in range(2):  # twice on one connection
        assert expected == node.client.get("/parts").content


def test_head_of_a_body_in_chunks_has_no_body(node: HttpNode) -> None:
    answer = exchange(node, b"HEAD /parts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (b"HTTP/1.1 200 OK", b"") == (answer[:15], answer.partition(b"\r\n\r\n")[2])


def test_more_connections_than_there_may_be_are_refused(node: HttpNode) -> None:
    open_sockets = [socket.create_connection(("127.0.0.1", node.service.port)) for _ in range(25)]
    try:
        wait_until(lambda: node.client.post("/echo").status_code == 503)
    finally:
        for each in open_sockets:
            each.close()
    wait_until(lambda: node.client.post("/echo").status_code == 200)


def test_metrics_count_requests(tmp_path: Path) -> None:
    with http_server(tmp_path / "data") as node:
        node.written("insert into root.a.d(time, x) values (1, 1)")
        text = node.client.get("/metrics").text
        for name, count in (("connections", 1), ("accepted_total", 1), ("requests_total", 2), ("refused_total", 0)):
            assert f'saros_port_{name}{{protocol="http"}} {count}.0\n' in text
        received, sent = (
            float(re.findall(rf'saros_port_{name}_bytes_total{{protocol="http"}} (\S+)', text)[0])
            for name in ("received", "sent")
        )
        assert received > sent > 0


def test_small_responses_are_not_held_back(node: HttpNode) -> None:
    assert node.service._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_service_ends_with_requests_in_progress(tmp_path: Path) -> None:
    CLOSED.clear()
    with serving(tmp_path, ROUTES) as node, node.client.stream("GET", "/endless") as answer:
        next(answer.iter_raw())
        node.service.stop(0.2)
        assert CLOSED.wait(PATIENCE_S)


# ---------------------------------------------------------------------------------------------- TLS


def certificate_in(folder: Path) -> CertificateFiles:
    folder.mkdir()
    key, certificate = self_signed(folder)
    return CertificateFiles(str(certificate), str(key))


@pytest.mark.slow
def test_tls_with_a_certificate_that_is_reloaded(tmp_path: Path) -> None:
    first, second = certificate_in(tmp_path / "first"), certificate_in(tmp_path / "second")

    def status(trusted: CertificateFiles) -> int:
        context = ssl.create_default_context(cafile=trusted.certificate)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return httpx.get(f"{node.url}/ping", verify=context, timeout=PATIENCE_S).status_code

    used = CertificateFiles(first.certificate, first.key)
    with http_server(tmp_path / "data", Security(tls=used), verify=False) as node:
        assert node.url.startswith("https://")
        assert 200 == status(first)
        second_certificate = Path(second.certificate).read_bytes()
        for old, new in ((first.certificate, second.certificate), (first.key, second.key)):
            Path(old).write_bytes(Path(new).read_bytes())
        trusted = tmp_path / "trusted.pem"
        trusted.write_bytes(second_certificate)
        assert 200 == status(CertificateFiles(str(trusted), ""))
        with pytest.raises(httpx.HTTPError):
            httpx.get(node.url.replace("https", "http") + "/ping", timeout=PATIENCE_S)


def test_a_handshake_that_does_not_come_ends_the_connection(tmp_path: Path) -> None:
    made = certificate_in(tmp_path / "tls")
    files = WatchedFiles((made.certificate, made.key))
    with serving(tmp_path / "data", ROUTES, QUICK, files) as node:
        assert b"" == exchange(node, b"\x16\x03\x01")


def test_chunks_of_several_buffers_arrive_over_tls(tmp_path: Path) -> None:
    made = certificate_in(tmp_path / "tls")
    context = ssl.create_default_context(cafile=made.certificate)
    with serving(tmp_path / "data", ROUTES, certificate=WatchedFiles((made.certificate, made.key))) as node:
        received = httpx.get(f"{node.url}/parts", verify=context, timeout=PATIENCE_S).content
    assert b"".join(buffer for chunk in CHUNKS for buffer in buffers_of(chunk)) == received

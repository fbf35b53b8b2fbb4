"""Connections to a node. The same rules hold for connections of threads and of event loops."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from driver.fake_node import FakeNode, Request
from free_ports import HOST, free_ports
from self_signed import self_signed
from waiting import PATIENCE_S, wait_until

from saros.aio import node_connection as loop_connection
from saros.aio.node_connection import AsyncNetwork
from saros.transport import exchange, node_connection, sockets
from saros.transport.exchange import Buffer, CallFailed, Fate, Reply
from saros.transport.node_connection import NodeConnection
from saros.transport.remote import BlockingNetwork
from saros.transport.remote_calls import Network, run
from saros_wire.frames import CREDIT_BYTES, MAGIC, Call, Kind, decode_credit, encode_prefix
from saros_wire.generated import client_pb2

HEAD = encode_prefix()
Steps = Callable[[Any], Awaitable[Any]]


@pytest.fixture(params=["threads", "loop"])
def perform(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return a function that runs steps on a network. Each test runs once with threads, and once on an event loop."""

    def on_threads(steps: Steps, authority: bytes | None = None) -> Any:
        network = BlockingNetwork(authority)
        try:
            return run(steps(network))
        finally:
            network.close()

    async def on_loop(steps: Steps, authority: bytes | None = None) -> Any:
        network = AsyncNetwork(authority)
        try:
            return await steps(network)
        finally:
            network.close()

    return on_threads if request.param == "threads" else lambda *words: asyncio.run(on_loop(*words))


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make clients give up silent nodes early."""
    for module in (exchange, node_connection):
        monkeypatch.setattr(module, "KEEPALIVE_S", 0.05)
    for module in (exchange, node_connection, sockets, loop_connection):
        monkeypatch.setattr(module, "SILENT_S", 0.3)


def echo(request: Request) -> None:
    request.link.send(Kind.REPLY, request.header.request, request.message, request.body)


async def ask(
    network: Network, node: FakeNode, head: bytes = b"", body: tuple[Buffer, ...] = (), timeout_s: float | None = None
) -> Reply:
    return await network.call(node.address, Call.INSERT, HEAD + head, body, timeout_s)


def failure_of(perform: Callable[[Steps], Any], steps: Steps) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        perform(steps)
    return caught.value


# ---------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("size", [0, 1, 32_000, 33_000, 65_536, 1_000_000])
def test_heads_and_bodies_of_any_size_arrive_whole(perform: Callable[[Steps], Any], size: int) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    head, body = content[: size // 2], content[:size]

    async def steps(network: Network) -> list[tuple[bytes, bytes]]:
        replies = [await ask(network, node, head, (body[:7], memoryview(body)[7:])) for _ in range(3)]
        return [(reply.head, bytes(reply.body)) for reply in replies]

    with FakeNode(echo) as node:
        assert [(head, body)] * 3 == perform(steps)
        assert 1 == len(node.links)


def test_a_body_of_more_buffers_than_the_system_takes_at_once_arrives_whole(perform: Callable[[Steps], Any]) -> None:
    parts = tuple(bytes([number % 256]) * 3 for number in range(3_000))

    async def steps(network: Network) -> bytes:
        return bytes((await ask(network, node, body=parts)).body)

    with FakeNode(echo) as node:
        assert b"".join(parts) == perform(steps)


def test_long_bodies_are_in_memory_that_arrow_reuses(perform: Callable[[Steps], Any]) -> None:
    async def steps(network: Network) -> int:
        before = pa.total_allocated_bytes()
        reply = await ask(network, node, body=(bytes(1_000_000),))
        assert 1_000_000 == len(reply.body)
        return pa.total_allocated_bytes() - before

    with FakeNode(echo) as node:
        assert perform(steps) >= 1_000_000


def test_an_error_leaves_the_connection_in_use(perform: Callable[[Steps], Any]) -> None:
    rows = client_pb2.PartialWrite(written=[client_pb2.RowRanges(device="root.a", starts=[1], ends=[2])])

    def answer(request: Request) -> None:
        reply = client_pb2.ErrorReply(code=2020, message="gone", partial_write=rows)
        request.link.send(Kind.ERROR, request.header.request, reply.SerializeToString())

    async def steps(network: Network) -> list[tuple[Fate, int, str, object]]:
        found = []
        for _ in range(2):
            try:
                await ask(network, node)
            except CallFailed as failed:
                found.append((failed.fate, failed.code, failed.details, failed.partial_write))
        return found

    with FakeNode(answer) as node:
        assert [(Fate.ANSWERED, 2020, "gone", rows)] * 2 == perform(steps)
        assert 1 == len(node.links)


def test_a_refusal_of_the_connection_is_the_answer(perform: Callable[[Steps], Any]) -> None:
    def answer(request: Request) -> None:
        request.link.send(Kind.ERROR, 0, client_pb2.ErrorReply(code=606, message="full").SerializeToString())
        request.link.close()

    with FakeNode(answer) as node:
        failed = failure_of(perform, lambda network: ask(network, node))
        assert (Fate.ANSWERED, 606, "full") == (failed.fate, failed.code, failed.details)


def test_a_connection_that_the_node_has_closed_is_not_used_again(perform: Callable[[Steps], Any]) -> None:
    async def steps(network: Network) -> None:
        for number in range(3):
            await ask(network, node)
            node.links[number].close()

    with FakeNode(echo) as node:
        perform(steps)
        assert 3 == len(node.links)


# ---------------------------------------------------------------------------------------------- failures


def close_at_once(request: Request) -> None:
    request.link.close()


def close_within_a_frame(request: Request) -> None:
    request.link.socket.sendall(b"\x05\x00\x00")
    request.link.close()


def send_garbage(request: Request) -> None:
    request.link.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def answer_another_request(request: Request) -> None:
    request.link.send(Kind.REPLY, request.header.request + 1)


@pytest.mark.parametrize(
    ("answer", "fate"),
    [
        (close_at_once, Fate.LOST),
        (close_within_a_frame, Fate.LOST),
        (send_garbage, Fate.BROKEN),
        (answer_another_request, Fate.BROKEN),
    ],
)
def test_a_call_without_a_proper_answer(
    perform: Callable[[Steps], Any], answer: Callable[[Request], None], fate: Fate
) -> None:
    with FakeNode(answer) as node:
        assert fate is failure_of(perform, lambda network: ask(network, node)).fate


def test_a_call_to_a_port_without_a_node_is_not_sent(perform: Callable[[Steps], Any]) -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    failed = failure_of(perform, lambda network: network.call(address, Call.PING, HEAD, (), None))
    assert (Fate.NOT_SENT, "failed to connect: Connection refused") == (failed.fate, failed.details)


def test_a_request_that_is_too_large_is_not_sent(perform: Callable[[Steps], Any]) -> None:
    async def steps(network: Network) -> Reply:
        with pytest.raises(CallFailed) as caught:
            await ask(network, node, body=(bytes(17 << 20),))
        assert Fate.TOO_LARGE is caught.value.fate
        return await ask(network, node, b"next")

    with FakeNode(echo) as node:
        assert b"next" == perform(steps).head
        assert 1 == len(node.requests)


@pytest.mark.usefixtures("hurried")
def test_a_node_that_takes_nothing_has_not_got_the_request(perform: Callable[[Steps], Any]) -> None:
    with socket.create_server((HOST, 0)) as silent:
        address = f"{HOST}:{silent.getsockname()[1]}"
        body = bytes(15 << 20)
        failed = failure_of(perform, lambda network: network.call(address, Call.INSERT, HEAD, (body,), None))
    assert (Fate.NOT_SENT, 0.3) == (failed.fate, failed.silent_s)


def test_a_call_that_takes_too_long_is_given_up_and_its_connection_closed(perform: Callable[[Steps], Any]) -> None:
    with FakeNode(lambda _: None) as node:
        failed = failure_of(perform, lambda network: ask(network, node, timeout_s=0.05))
        assert Fate.LATE is failed.fate
        wait_until(lambda: not node.is_connected)


@pytest.mark.usefixtures("hurried")
def test_a_node_that_answers_pings_is_waited_for(perform: Callable[[Steps], Any]) -> None:
    def answer(request: Request) -> None:
        wait_until(lambda: request.link.pings > 5)
        echo(request)

    async def steps(network: Network) -> Reply:
        return await ask(network, node, b"late")

    with FakeNode(answer) as node:
        assert b"late" == perform(steps).head


@pytest.mark.usefixtures("hurried")
def test_a_node_that_answers_no_pings_is_given_up(perform: Callable[[Steps], Any]) -> None:
    def answer(request: Request) -> None:
        request.link.pongs = False

    with FakeNode(answer) as node:
        failed = failure_of(perform, lambda network: ask(network, node))
        assert (Fate.LOST, 1) == (failed.fate, node.links[0].pings)
        assert failed.silent_s >= 0.3


# ---------------------------------------------------------------------------------------------- streams


def test_items_come_in_order_under_credits(perform: Callable[[Steps], Any]) -> None:
    item = bytes(CREDIT_BYTES // 2)

    def answer(request: Request) -> None:
        if request.message:
            request.reply()
            return
        request.reply(body=b"first", more=True)
        for _ in range(4):
            request.item(item)
        granted = [decode_credit(request.control(Kind.CREDIT)) for _ in range(2)]
        assert [CREDIT_BYTES] * 2 == granted
        request.item(b"last")
        request.end(b"end")

    async def steps(network: Network) -> list[object]:
        reply = await ask(network, node)
        stream = reply.rest
        assert stream is not None
        items = []
        while (found := await stream.next()) is not None:
            items.append(len(found))
        assert await stream.next() is None
        await stream.cancel()
        await ask(network, node, b"another request")
        return [items, stream.end, len(node.links)]

    with FakeNode(answer) as node:
        assert [[len(item)] * 4 + [4], b"end", 1] == perform(steps)


def test_a_stream_that_is_canceled_gives_its_connection_back(perform: Callable[[Steps], Any]) -> None:
    def answer(request: Request) -> None:
        request.reply(more=True)
        request.item(b"1")
        request.item(b"2")
        request.control(Kind.CANCEL)
        request.error(715)

    async def steps(network: Network) -> None:
        for _ in range(2):
            stream = (await ask(network, node)).rest
            assert stream is not None
            assert b"1" == await stream.next()
            await stream.cancel()
            with pytest.raises(CallFailed) as caught:
                await stream.next()
            assert Fate.CANCELLED is caught.value.fate

    with FakeNode(answer) as node:
        perform(steps)
        assert 1 == len(node.links)


def test_items_that_come_after_a_stream_was_canceled_are_thrown_away(perform: Callable[[Steps], Any]) -> None:
    """One thread or task cancels a stream while another waits for it. Items before the stream's end are discarded."""

    def answer(request: Request) -> None:
        request.reply(more=True)
        request.control(Kind.CANCEL)
        request.item(b"late")
        request.item(b"later")
        request.error(715)

    async def steps(network: Network) -> None:
        stream = (await ask(network, node)).rest
        assert stream is not None
        if isinstance(network, AsyncNetwork):
            waiting: Any = asyncio.create_task(stream.next())
            await asyncio.sleep(0)
            await stream.cancel()
            await asyncio.wait((waiting,))
        else:
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(lambda: run(stream.next()))
                wait_until(stream._receiving.locked)  # type: ignore[attr-defined]
                await stream.cancel()
        assert isinstance(error := waiting.exception(), CallFailed)
        assert Fate.CANCELLED is error.fate
        await network.call(node.address, Call.CLOSE, HEAD, (), None)

    with FakeNode(answer) as node:
        perform(steps)
        assert 1 == len(node.links)


def test_a_canceled_stream_that_does_not_end_loses_its_connection(perform: Callable[[Steps], Any]) -> None:
    def answer(request: Request) -> None:
        request.reply(more=True)

    async def steps(network: Network) -> None:
        stream = (await ask(network, node)).rest
        assert stream is not None
        await stream.cancel()
        await asyncio_or_not(network, lambda: not node.is_connected)

    with FakeNode(answer) as node:
        perform(steps)


def test_a_stream_that_is_dropped_closes_its_connection(perform: Callable[[Steps], Any]) -> None:
    async def steps(network: Network) -> None:
        reply = await ask(network, node)
        del reply
        gc.collect()
        await asyncio_or_not(network, lambda: not node.is_connected)

    with FakeNode(lambda request: request.reply(more=True)) as node:
        perform(steps)


async def asyncio_or_not(network: Network, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, without blocking an event loop."""
    if isinstance(network, AsyncNetwork):
        await asyncio.to_thread(wait_until, condition)
    else:
        wait_until(condition)


# ---------------------------------------------------------------------------------------------- threads


def test_a_result_is_canceled_by_another_thread_while_one_waits_for_it() -> None:
    def answer(request: Request) -> None:
        request.reply(more=True)
        request.control(Kind.CANCEL)
        request.error(715)

    network = BlockingNetwork(None)
    with FakeNode(answer) as node, ThreadPoolExecutor(1) as pool:
        stream = run(ask(network, node)).rest
        assert stream is not None
        waiting = pool.submit(lambda: run(stream.next()))
        wait_until(stream._receiving.locked)  # type: ignore[attr-defined]
        run(stream.cancel())
        assert isinstance(error := waiting.exception(PATIENCE_S), CallFailed)
        assert Fate.CANCELLED is error.fate
        run(network.call(node.address, Call.CLOSE, HEAD, (), None))
        assert 1 == len(node.links)
    network.close()


def test_a_call_that_is_broken_off_by_ctrl_c_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    network = BlockingNetwork(None)
    with FakeNode(echo) as node:
        run(ask(network, node))
        receive = NodeConnection.receive

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(NodeConnection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(ask(network, node))
        monkeypatch.setattr(NodeConnection, "receive", receive)
        assert b"next" == run(ask(network, node, b"next")).head
        assert 2 == len(node.links)
    network.close()


def test_threads_that_call_at_once_have_a_connection_each() -> None:
    together = threading.Barrier(4)

    def answer(request: Request) -> None:
        together.wait(PATIENCE_S)
        echo(request)

    network = BlockingNetwork(None)
    with FakeNode(answer) as node, ThreadPoolExecutor(4) as pool:
        heads = [str(number).encode() for number in range(4)]
        replies = pool.map(lambda head: run(ask(network, node, head)).head, heads)
        assert heads == list(replies)
        assert 4 == len(node.links)
    network.close()


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, bytes]:
    """Return the TLS context of a node, and its certificate."""
    key, certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate.read_bytes()


def test_a_connection_with_tls_is_used_again(perform: Callable[..., Any], tls: tuple[ssl.SSLContext, bytes]) -> None:
    async def steps(network: Network) -> list[bytes]:
        return [bytes((await ask(network, node, body=(bytes([size % 256]) * size,))).body) for size in sizes]

    sizes = [0, 300_000, 1, 20_000]
    with FakeNode(echo, tls=tls[0]) as node:
        assert [bytes([size % 256]) * size for size in sizes] == perform(steps, tls[1])
        assert 1 == len(node.links)


def test_a_busy_event_loop_reads_long_answers_over_tls(tls: tuple[ssl.SSLContext, bytes]) -> None:
    def answer(request: Request) -> None:
        request.reply(body=bytes(300_000))  # several times as long as the client's buffer

    async def steps() -> list[int]:
        network = AsyncNetwork(tls[1])
        sizes = []
        for _ in range(5):
            asyncio.get_running_loop().call_later(0.001, time.sleep, 0.02)  # the answer arrives during this sleep
            sizes.append(len((await ask(network, node)).body))
        network.close()
        return sizes

    with FakeNode(answer, tls=tls[0]) as node:
        assert [300_000] * 5 == asyncio.run(steps())


def test_a_node_whose_certificate_is_not_signed_is_not_sent_a_request(
    perform: Callable[..., Any], tls: tuple[ssl.SSLContext, bytes], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    _, other = self_signed(tmp_path / "other")
    with FakeNode(echo, tls=tls[0]) as node, pytest.raises(CallFailed, match="CERTIFICATE_VERIFY_FAILED") as caught:
        perform(lambda network: ask(network, node), other.read_bytes())
    assert (Fate.NOT_SENT, []) == (caught.value.fate, node.requests)


def test_a_long_result_comes_and_is_canceled_by_another_thread_over_tls(tls: tuple[ssl.SSLContext, bytes]) -> None:
    item = bytes(range(256)) * 4_096

    def answer(request: Request) -> None:
        request.reply(more=True)
        for _ in range(3):
            request.item(item)
        request.control(Kind.CANCEL)
        request.error(715)

    network = BlockingNetwork(tls[1])
    with FakeNode(answer, tls=tls[0]) as node, ThreadPoolExecutor(1) as pool:
        stream = run(ask(network, node)).rest
        assert stream is not None
        assert [item] * 3 == [bytes(run(stream.next()) or b"") for _ in range(3)]
        waiting = pool.submit(lambda: run(stream.next()))
        wait_until(stream._receiving.locked)  # type: ignore[attr-defined]
        run(stream.cancel())
        assert isinstance(waiting.exception(PATIENCE_S), CallFailed)
    network.close()


# ---------------------------------------------------------------------------------------------- tasks


def test_a_canceled_task_cancels_its_call_and_keeps_the_connection() -> None:
    begun = threading.Event()

    def answer(request: Request) -> None:
        if request.message:
            echo(request)
            return
        begun.set()
        request.control(Kind.CANCEL)
        request.error(715)

    async def steps() -> None:
        network = AsyncNetwork(None)
        task = asyncio.create_task(ask(network, node))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert b"next" == (await ask(network, node, b"next")).head
        network.close()

    with FakeNode(answer) as node:
        asyncio.run(steps())
        assert 1 == len(node.links)


def test_connections_of_one_loop_are_not_used_in_another_one() -> None:
    network = AsyncNetwork(None)
    loops = [asyncio.new_event_loop() for _ in range(2)]
    with FakeNode(echo) as node:
        for number, loop in enumerate(loops):
            assert bytes([number]) == loop.run_until_complete(ask(network, node, bytes([number]))).head
        assert 2 == len(node.links)
        network.close()
        for loop in loops:
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()


# ---------------------------------------------------------------------------------------------- nodes of other versions


def test_a_node_of_another_version_says_so() -> None:
    with socket.create_server((HOST, 0)) as listener:
        address = f"{HOST}:{listener.getsockname()[1]}"

        def serve() -> None:
            connected, _ = listener.accept()
            with connected:
                assert connected.recv(100).startswith(MAGIC)
                refusal = client_pb2.ErrorReply(code=2015, message="use a newer driver").SerializeToString()
                connected.sendall(
                    len(refusal).to_bytes(4, "little") + bytes(8) + bytes([Kind.ERROR, 0, 0, 0]) + refusal
                )

        with ThreadPoolExecutor(1) as pool:
            served = pool.submit(serve)
            connection = NodeConnection(address, None)
            with pytest.raises(CallFailed, match="use a newer driver") as caught:
                connection.call(Call.PING, HEAD, PATIENCE_S)
            assert (Fate.ANSWERED, 2015) == (caught.value.fate, caught.value.code)
            connection.close()
            served.result(PATIENCE_S)

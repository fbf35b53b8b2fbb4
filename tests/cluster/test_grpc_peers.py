"""Nodes that communicate over gRPC: two or three of them in one process, on loopback ports."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from cluster.name_server import NameServer
from free_ports import HOST, free_addresses, free_ports
from manual_clock import ManualClock
from stopped_clock import StoppedClock
from waiting import PATIENCE_S, wait_until

from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Append, Entry, EntryKind, GroupId, Heartbeat, Message
from saros_cluster.transport import channels, codec, grpc_peers, peer_stream, serving
from saros_cluster.transport.channels import CALL_PATH, CODE_KEY, MESSAGE_BYTES_MAX, RAFT_PATH, STREAM_PATH
from saros_cluster.transport.grpc_peers import CannotListen, GrpcPeers
from saros_cluster.transport.handshake import Identity, PeerCredentials, Refused, handshake_metadata, verified_sender
from saros_cluster.transport.peer_stream import Outbox
from saros_cluster.transport.serving import InboundStreams, ServingError
from saros_storage.base.clock import Clock, SystemClock

A, B, C = NodeId(1), NodeId(2), NodeId(3)
#: A timeout that no call of these tests reaches.
LONG = PATIENCE_S


def beat(number: int, sender: NodeId = A, receiver: NodeId = B) -> Message:
    return Heartbeat(GroupId(1), sender, receiver, 1, number, 0)


def append(size: int) -> Message:
    return Append(GroupId(1), A, B, 1, 0, 0, (Entry(1, 1, EntryKind.DATA, bytes(size)),), 0)


class Inbox:
    """A record of the received batches, as (sender, messages)."""

    def __init__(self) -> None:
        self.batches: list[tuple[NodeId, list[Message]]] = []
        self._changed = threading.Condition()

    def receive(self, sender: NodeId, messages: Sequence[Message]) -> None:
        with self._changed:
            self.batches.append((sender, list(messages)))
            self._changed.notify_all()

    @property
    def messages(self) -> list[Message]:
        return [message for _, batch in self.batches for message in batch]

    def wait(self, count: int, timeout_s: float = LONG) -> list[Message]:
        with self._changed:
            self._changed.wait_for(lambda: len(self.messages) >= count, timeout_s)
            return self.messages


class Town:
    """Nodes that know each other's addresses."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self.addresses: dict[NodeId, str] = {}
        self.inboxes: dict[NodeId, Inbox] = {}
        self._open: list[GrpcPeers] = []

    def end(
        self,
        node: NodeId,
        *,
        cluster: str = "plant",
        credentials: PeerCredentials | None = None,
        port: int | None = None,
        listens: bool = True,
        calls: dict[str, Callable[[NodeId, bytes], bytes]] | None = None,
        streams: dict[str, Callable[[NodeId, bytes], Iterator[bytes]]] | None = None,
    ) -> GrpcPeers:
        peers = GrpcPeers(Identity(cluster, node), self.addresses.get, credentials, self.clock)
        self._open.append(peers)
        if listens:
            self.inboxes[node] = Inbox()
            receive = self.inboxes[node].receive
            port = port or free_ports(1)[0]
            bound = peers.start(HOST, port, receive=receive, calls=calls or {}, streams=streams or {})
            self.addresses[node] = f"{HOST}:{bound}"
        return peers

    def close(self) -> None:
        for peers in self._open:
            peers.close()


@pytest.fixture
def town() -> Iterator[Town]:
    town = Town()
    yield town
    town.close()


# ---------------------------------------------------------------------- messages


def test_messages_arrive_once_in_order_with_their_sender(town: Town) -> None:
    a, _ = town.end(A), town.end(B)
    expected = [beat(number) for number in range(3_000)]
    for message in expected:
        a.send(B, [message])
    assert expected == town.inboxes[B].wait(len(expected))
    assert {A} == {sender for sender, _ in town.inboxes[B].batches}
    sent, received = a.counters()[B], town._open[1].counters()[A]
    assert 3_000 == sent.messages_sent == received.messages_received
    assert sent.bytes_sent == received.bytes_received > 3_000 * 29
    assert 0 == sent.messages_dropped == sent.reconnects


def test_who_was_not_heard_of_is_answered_where_it_says_that_it_listens(town: Town) -> None:
    told: list[bytes] = []
    new = GrpcPeers(Identity("plant", B), {}.get, None, SystemClock())
    inbox = Inbox()
    bound = new.start("127.0.0.1", 0, receive=inbox.receive, calls={}, streams={})
    town.addresses[B] = f"127.0.0.1:{bound}"
    (address,) = free_addresses(1)
    leader = GrpcPeers(Identity("plant", A, address), town.addresses.get, None, SystemClock())
    try:
        heard = Inbox()
        port = int(address.rpartition(":")[2])
        leader.start("127.0.0.1", port, receive=heard.receive, calls={"ask": lambda _, request: request}, streams={})
        with pytest.raises(Unreachable, match="not known"):
            new.call(A, "ask", b"too early", LONG)
        leader.send(B, [beat(1)])
        inbox.wait(1)
        told.append(new.call(A, "ask", b"a snapshot", LONG))
        new.send(A, [beat(2, B, A)])
        heard.wait(1)
    finally:
        leader.close()
        new.close()
    assert [b"a snapshot"] == told


def test_three_nodes_talk_both_ways(town: Town) -> None:
    ends = {node: town.end(node) for node in (A, B, C)}
    for sender, end in ends.items():
        for receiver in ends.keys() - {sender}:
            end.send(receiver, [beat(sender * 10 + receiver, sender, receiver)])
    for receiver in ends:
        expected = {(sender, sender * 10 + receiver) for sender in ends.keys() - {receiver}}
        town.inboxes[receiver].wait(2)
        assert expected == {(sender, batch[0].commit) for sender, batch in town.inboxes[receiver].batches}


def test_what_waits_goes_as_one(town: Town) -> None:
    a = town.end(A)
    expected = [beat(number) for number in range(100)]
    for message in expected:
        a.send(B, [message])
    town.end(B)
    assert expected == town.inboxes[B].wait(100)
    assert 1 == len(town.inboxes[B].batches)


def test_what_waits_is_split_at_the_limit(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "BATCH_BYTES_MAX", 1_100)
    a = town.end(A)
    for message in [append(400), append(400), append(400), beat(1), append(2_000), beat(2)]:
        a.send(B, [message])
    town.end(B)
    town.inboxes[B].wait(5)
    assert [2, 3] == [len(batch) for _, batch in town.inboxes[B].batches]
    assert 1 == a.counters()[B].messages_dropped


def test_a_large_message_arrives(town: Town) -> None:
    a, _ = town.end(A), town.end(B)
    message = append(MESSAGE_BYTES_MAX - 100)
    a.send(B, [message])
    assert [message] == town.inboxes[B].wait(1)


def test_an_outbox_forgets_the_oldest() -> None:
    frames = [codec.encode_message(beat(number)) for number in range(10)]
    size = frames[0].size_bytes
    by_count, by_bytes = Outbox(messages_max=4), Outbox(bytes_max=4 * size + 1)
    for outbox in (by_count, by_bytes):
        assert 0 == outbox.put(frames[:4])
        assert 3 == outbox.put(frames[4:7])
        assert frames[3:7] == outbox.take(lambda: False)
        assert 6 == outbox.put(frames)
        outbox.close()
        assert 2 == outbox.put(frames[:2])
        assert [] == outbox.take(lambda: False)


def test_what_a_full_queue_forgot_is_counted(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outbox.__init__, "__defaults__", (1 << 20, 10))
    a = town.end(A)
    for number in range(25):
        a.send(B, [beat(number)])
    town.end(B)
    assert [beat(number) for number in range(15, 25)] == town.inboxes[B].wait(10)
    assert 15 == a.counters()[B].messages_dropped


def repeat_until_heard(peers: GrpcPeers, inbox: Inbox, number: int) -> None:
    """Send a message until it arrives; Raft repeats messages, too."""

    def is_heard() -> bool:
        peers.send(B, [beat(number)])
        return beat(number) in inbox.wait(len(inbox.messages) + 1, 0.1)

    wait_until(is_heard)


def test_a_lane_connects_again_after_a_restart(town: Town) -> None:
    a, b = town.end(A), town.end(B)
    repeat_until_heard(a, town.inboxes[B], 1)
    b.close()
    town.end(B, port=int(town.addresses[B].rpartition(":")[2]))
    repeat_until_heard(a, town.inboxes[B], 2)
    assert beat(2) == town.inboxes[B].messages[-1]
    assert 1 == a.counters()[B].reconnects


def test_calls_come_through_again_after_a_restart(town: Town) -> None:
    a, b = town.end(A), town.end(B, calls={"echo": lambda _, request: request})
    a.call(B, "echo", b"x", LONG)
    b.close()
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"x", LONG)
    town.end(B, port=int(town.addresses[B].rpartition(":")[2]), calls={"echo": lambda _, request: request})

    def comes_through() -> bool:
        with suppress(Unreachable):
            return b"x" == a.call(B, "echo", b"x", LONG)
        return False

    wait_until(comes_through)


class Pipe:
    """A TCP proxy that forwards nothing after `clog`, and leaves its connections open."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._there = (host, int(port))
        self._clogged = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def clog(self) -> None:
        self._clogged.set()

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, there = self._listener.accept()[0], socket.create_connection(self._there)
                self._sockets += [here, there]
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self._clogged.is_set():
                    target.sendall(data)


@pytest.mark.slow
def test_a_connection_that_nothing_comes_through_is_given_up(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    hurried = {
        "grpc.keepalive_time_ms": 100,
        "grpc.http2.min_ping_interval_without_data_ms": 10,
        "grpc.http2.ping_timeout_ms": 1_000,
        "grpc.keepalive_timeout_ms": 1_000,
    }
    for name in ("SERVER_OPTIONS", "_CHANNEL_OPTIONS"):
        options = tuple((key, hurried.get(key, value)) for key, value in getattr(channels, name))
        monkeypatch.setattr(channels if name[0] == "_" else grpc_peers, name, options)
    tap = Tap()
    a, _ = town.end(A), town.end(B, streams={"tap": tap})
    direct, pipe = town.addresses[B], Pipe(town.addresses[B])
    town.addresses[B] = pipe.address
    repeat_until_heard(a, town.inboxes[B], 1)
    answers = a.stream(B, "tap", b"", LONG)
    next(answers)
    pipe.clog()
    town.addresses[B] = direct
    with pytest.raises(Unreachable):
        list(answers)
    repeat_until_heard(a, town.inboxes[B], 2)
    assert a.counters()[B].reconnects
    assert tap.closed.wait(LONG)
    pipe.close()


def test_a_lane_and_calls_follow_a_node_that_moves(town: Town) -> None:
    a, b = town.end(A), town.end(B, calls={"where": lambda _, __: b"old"})
    repeat_until_heard(a, town.inboxes[B], 1)
    assert b"old" == a.call(B, "where", b"", LONG)
    town.end(B, calls={"where": lambda _, __: b"new"})
    assert b"new" == a.call(B, "where", b"", LONG)
    b.close()
    repeat_until_heard(a, town.inboxes[B], 2)


def test_a_message_that_cannot_be_handled_ends_the_connection_only(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    a = town.end(A)
    b = town.end(B, listens=False)
    inbox = Inbox()

    def receive(sender: NodeId, messages: Sequence[Message]) -> None:
        if beat(13) in messages:
            raise ArithmeticError("thirteen")
        inbox.receive(sender, messages)

    town.addresses[B] = f"127.0.0.1:{b.start('127.0.0.1', 0, receive=receive, calls={}, streams={})}"
    a.send(B, [beat(13)])
    repeat_until_heard(a, inbox, 14)
    assert "thirteen" in caplog.text


class FakeContext:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def test_nothing_of_an_old_connection_comes_after_a_newer_one() -> None:
    inbox = Inbox()
    arrivals = InboundStreams(inbox.receive)
    contexts = [FakeContext() for _ in range(4)]
    first = arrivals.enter(A, 7, 1, contexts[0])
    assert arrivals.deliver(A, first, [beat(1)])
    second = arrivals.enter(A, 7, 2, contexts[1])
    assert contexts[0].cancelled
    assert not arrivals.deliver(A, first, [beat(2)])
    assert arrivals.deliver(A, second, [beat(3)])
    arrivals.leave(A, first)
    assert arrivals.deliver(A, second, [beat(4)])
    with pytest.raises(ServingError, match="older"):
        arrivals.enter(A, 7, 1, contexts[2])
    restarted = arrivals.enter(A, 8, 1, contexts[3])
    assert not arrivals.deliver(A, second, [beat(5)])
    assert arrivals.deliver(A, restarted, [beat(6)])
    assert [beat(number) for number in (1, 3, 4, 6)] == inbox.messages


def test_a_newer_connection_waits_for_what_an_old_one_is_delivering() -> None:
    inside, go_on, order = threading.Event(), threading.Event(), []

    def receive(_: NodeId, messages: Sequence[Message]) -> None:
        if messages == [beat(1)]:
            inside.set()
            assert go_on.wait(LONG)
        order.extend(messages)

    arrivals = InboundStreams(receive)
    old = arrivals.enter(A, 7, 1, FakeContext())
    threads = [threading.Thread(target=arrivals.deliver, args=(A, old, [beat(1)]))]
    threads[0].start()
    assert inside.wait(LONG)
    new = arrivals.enter(A, 7, 2, FakeContext())
    threads.append(threading.Thread(target=arrivals.deliver, args=(A, new, [beat(2)])))
    threads[1].start()
    threads[1].join(0.05)
    assert [] == order
    go_on.set()
    for thread in threads:
        thread.join(LONG)
    assert [beat(1), beat(2)] == order


def test_senders_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LANES_MAX", 2)
    arrivals = InboundStreams(Inbox().receive)
    first = arrivals.enter(A, 7, 1, FakeContext())
    arrivals.enter(B, 7, 1, FakeContext())
    with pytest.raises(ServingError):
        arrivals.enter(C, 7, 1, FakeContext())
    arrivals.enter(B, 7, 2, FakeContext())
    arrivals.leave(A, first)
    arrivals.enter(C, 7, 1, FakeContext())


# ---------------------------------------------------------------------- handshake


def test_a_sender_is_who_the_metadata_and_the_certificate_say() -> None:
    here = Identity("plant", B)
    good = dict(handshake_metadata(Identity("plant", A), B))
    assert A == verified_sender(here, good, None)
    assert A == verified_sender(here, good, {"peer_uri": [b"saros://plant/node/1"]})
    bad: list[tuple[int, dict[str, str], dict[str, list[bytes]] | None]] = [
        (2015, good | {"saros-protocol": "1"}, None),
        (2015, {}, None),
        (2019, good | {"saros-cluster": "other"}, None),
        (2019, good | {"saros-receiver": "3"}, None),
        (2019, good | {"saros-sender": "-1"}, None),
        (2019, good | {"saros-sender": "1" * 21}, None),
        (2019, good, {}),
        (2019, good, {"peer_uri": [b"saros://plant/node/3"]}),
        (2019, good, {"peer_uri": [b"saros://other/node/1"]}),
        (2019, good, {"peer_dns": [b"saros://plant/node/1"]}),
    ]
    for code, metadata, certificate in bad:
        with pytest.raises(Refused) as refused:
            verified_sender(here, metadata, certificate)
        assert code == refused.value.code


@pytest.mark.parametrize("cluster", ["", "a/b", "a b", "é", ".a", "a" * 65, "a\n"])
def test_an_id_of_a_cluster_is_plain(cluster: str) -> None:
    with pytest.raises(ValueError):
        Identity(cluster, A)


def ask(channel: grpc.Channel, path: str, metadata: dict[str, str], request: bytes, timeout: float | None) -> object:
    rest = {"metadata": tuple(metadata.items()), "timeout": timeout}
    if path == RAFT_PATH:
        return channel.stream_unary(path)(iter([request]), **rest)
    if path == STREAM_PATH:
        return list(channel.unary_stream(path)(request, **rest))
    return channel.unary_unary(path)(request, **rest)


def refusal(
    address: str, path: str, metadata: dict[str, str], request: bytes = b"", timeout: float | None = LONG
) -> int | grpc.StatusCode:
    """Send these bytes as a call; return the Saros code of the error, or the gRPC code if there is no Saros code."""
    with grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)]) as channel:
        with pytest.raises(grpc.RpcError) as failed:
            ask(channel, path, metadata, request, timeout)
        code = dict(failed.value.trailing_metadata()).get(CODE_KEY)
        return failed.value.code() if code is None else int(code)


GOOD = dict(handshake_metadata(Identity("plant", A), B)) | {
    "saros-name": "echo",
    "saros-timeout-ms": "9000",
    "saros-connection": "1/1",
}
WRONG = {
    "version": (2015, {"saros-protocol": "1"}),
    "cluster": (2019, {"saros-cluster": "other"}),
    "receiver": (2019, {"saros-receiver": "1"}),
    "sender": (2019, {"saros-sender": "x"}),
}


@pytest.mark.parametrize("path", [RAFT_PATH, CALL_PATH, STREAM_PATH])
def test_a_wrong_greeting_is_refused_before_anything_else(town: Town, path: str) -> None:
    asked: list[bytes] = []

    def handle(_: NodeId, request: bytes) -> bytes:
        asked.append(request)
        return request

    town.end(B, calls={"echo": handle}, streams={"echo": lambda n, r: iter([handle(n, r)])})
    batch = codec.encode_batch([beat(1)])
    for code, change in WRONG.values():
        assert code == refusal(town.addresses[B], path, GOOD | change, batch)
    assert [] == asked
    assert [] == town.inboxes[B].messages


def test_what_is_no_request_is_refused(town: Town) -> None:
    town.end(B, calls={"echo": lambda _, request: request})
    address = town.addresses[B]
    assert 2003 == refusal(address, RAFT_PATH, GOOD, b"\1")
    assert 2003 == refusal(address, RAFT_PATH, GOOD | {"saros-connection": "x"}, codec.encode_batch([beat(1)]))
    assert [] == town.inboxes[B].messages
    assert 2002 == refusal(address, CALL_PATH, GOOD | {"saros-name": "other"})
    assert 2002 == refusal(address, STREAM_PATH, GOOD)
    assert 2003 == refusal(address, CALL_PATH, GOOD, timeout=None)
    assert 2003 == refusal(address, CALL_PATH, GOOD, timeout=100_000.0)
    for timeout_ms in ("", "x", "-1", "9" * 9, "9" * 10):
        assert 2003 == refusal(address, STREAM_PATH, GOOD | {"saros-timeout-ms": timeout_ms})


def test_another_node_at_an_address_is_noticed_and_logged_once(
    town: Town, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_stream, "BACKOFF_S_MAX", 0.02)
    monkeypatch.setattr(peer_stream, "BACKOFF_S_MIN", 0.02)
    a = town.end(A)
    town.end(C)
    town.addresses[B] = town.addresses[C]
    tries = 0
    known = threading.Event()

    def address_of(node: NodeId) -> str | None:
        nonlocal tries
        tries += 1
        if tries == 6:
            known.set()
        return town.addresses.get(node)

    monkeypatch.setattr(a._dialer, "_address_of", address_of)
    a.send(B, [beat(1)])
    assert known.wait(LONG)
    assert [] == town.inboxes[C].messages
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert ["this is node 3 of cluster plant, not node 2 of cluster plant"] == [record.why for record in warnings]
    with pytest.raises(RemoteError, match="this is node 3") as refused:
        a.call(B, "echo", b"", LONG)
    assert 2019 == refused.value.code
    town.end(B)
    assert [beat(1)] == town.inboxes[B].wait(1)


def test_another_cluster_is_refused(town: Town) -> None:
    a = town.end(A, cluster="other")
    town.end(B, calls={"echo": lambda _, request: request}, streams={"s": lambda _, __: iter([b""])})
    with pytest.raises(RemoteError) as call:
        a.call(B, "echo", b"", LONG)
    with pytest.raises(RemoteError) as stream:
        list(a.stream(B, "s", b"", LONG))
    assert (2019, 2019) == (call.value.code, stream.value.code)


# ---------------------------------------------------------------------- calls


def test_a_call_is_answered_and_the_handler_knows_who_asks(town: Town) -> None:
    a, c = town.end(A), town.end(C)
    town.end(B, calls={"who": lambda node, request: b"%d %s" % (node, request)})
    assert b"1 x" == a.call(B, "who", b"x", LONG)
    assert b"3 " == c.call(B, "who", b"", LONG)


class Full(Exception):
    code = 611


def test_errors_of_handlers_travel(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: NodeId, request: bytes) -> bytes:
        raise {b"full": Full("满了" * 3_000), b"bug": KeyError("who knows")}[request]

    def fail_later(node: NodeId, request: bytes) -> Iterator[bytes]:
        yield b"first"
        fail(node, request)

    a, _ = town.end(A), town.end(B, calls={"fail": fail}, streams={"fail": fail_later})
    for request, code, text in ((b"full", 611, "满了" * 2_000), (b"bug", 2001, "'who knows'")):
        with pytest.raises(RemoteError) as failed:
            a.call(B, "fail", request, LONG)
        assert (B, code, text) == (failed.value.node, failed.value.code, str(failed.value))
        answers = a.stream(B, "fail", request, LONG)
        assert b"first" == next(answers)
        with pytest.raises(RemoteError) as failed:
            next(answers)
        assert (B, code, text) == (failed.value.node, failed.value.code, str(failed.value))
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [KeyError, KeyError] == [record.exc_info[0] for record in logged if record.exc_info]


@pytest.mark.parametrize(("address", "why"), [(None, "not known"), ("10.0.0.1:1", "no certificate"), ("", "connect")])
def test_who_cannot_be_reached(town: Town, address: str | None, why: str) -> None:
    a, b = town.end(A), town.end(B)
    b.close()
    nobody = town.addresses.pop(B)
    if address is not None:
        town.addresses[B] = address or nobody
    for ask_b in (a.call, lambda *request: list(a.stream(*request))):
        with pytest.raises(Unreachable, match=why) as failed:
            ask_b(B, "echo", b"", LONG)
        assert (B, 2016) == (failed.value.node, failed.value.code)


def test_a_late_answer_is_unreachable(town: Town) -> None:
    go_on = threading.Event()

    def wait(_: NodeId, __: bytes) -> bytes:
        assert go_on.wait(LONG)
        return b""

    def drip(_: NodeId, __: bytes) -> Iterator[bytes]:
        yield b"first"
        yield wait(A, b"")

    town.clock = clock = StoppedClock()
    a, _ = town.end(A), town.end(B, calls={"wait": wait}, streams={"drip": drip})
    with pytest.raises(Unreachable):
        a.call(B, "wait", b"", 0.1)
    clock.stop()
    answers = a.stream(B, "drip", b"", 0.2)
    assert b"first" == next(answers)
    clock.go_on()
    with pytest.raises(Unreachable, match="no response within"):
        next(answers)
    go_on.set()


def test_a_stream_may_last_longer_than_one_answer(town: Town) -> None:
    def drip(_: NodeId, __: bytes) -> Iterator[bytes]:
        for number in range(6):
            threading.Event().wait(0.1)
            yield b"%d" % number

    town.clock = clock = ManualClock()
    a, _ = town.end(A), town.end(B, streams={"drip": drip})
    found = []
    for answer in a.stream(B, "drip", b"", 0.04):
        found.append(answer)
        clock.advance(0.03)
    assert [b"%d" % number for number in range(6)] == found


def test_what_is_too_large_is_refused(town: Town) -> None:
    asked: list[int] = []

    def answer(_: NodeId, request: bytes) -> bytes:
        asked.append(len(request))
        return bytes(MESSAGE_BYTES_MAX + len(request))

    a = town.end(A)
    town.end(B, calls={"x": answer}, streams={"x": lambda node, request: iter([answer(node, request)])})
    for ask_b in (a.call, lambda *request: list(a.stream(*request))):
        for request, refusal_of in ((bytes(MESSAGE_BYTES_MAX + 1), "the request of"), (b"x", "the response of")):
            with pytest.raises(RemoteError, match=refusal_of) as failed:
                ask_b(B, "x", request, LONG)
            assert 2006 == failed.value.code
    for path in (RAFT_PATH, CALL_PATH, STREAM_PATH):
        code = refusal(town.addresses[B], path, GOOD | {"saros-name": "x"}, bytes(MESSAGE_BYTES_MAX + 1))
        assert grpc.StatusCode.RESOURCE_EXHAUSTED is code
    assert [1, 1] == asked


def test_as_large_as_allowed_passes(town: Town) -> None:
    a = town.end(A)
    town.end(B, calls={"echo": lambda _, r: r}, streams={"echo": lambda _, r: iter([r])})
    large = bytes(range(256)) * (MESSAGE_BYTES_MAX // 256)
    assert large == a.call(B, "echo", large, LONG)
    assert [large] == list(a.stream(B, "echo", large, LONG))


def test_calls_at_once_are_limited_and_leave_room_for_raft(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "CALLS_MAX", 2)
    monkeypatch.setattr(serving, "STREAMS_MAX", 1)
    inside, go_on = threading.Semaphore(0), threading.Event()

    def wait(_: NodeId, __: bytes) -> bytes:
        inside.release()
        assert go_on.wait(LONG)
        return b"done"

    def endless(_: NodeId, __: bytes) -> Iterator[bytes]:
        while True:
            yield b""

    a, _ = town.end(A), town.end(B, calls={"wait": wait}, streams={"endless": endless})
    done: list[bytes] = []
    threads = [threading.Thread(target=lambda: done.append(a.call(B, "wait", b"", LONG))) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert inside.acquire(timeout=LONG)
    stream = a.stream(B, "endless", b"", LONG)
    next(stream)
    for refused in (lambda: a.call(B, "wait", b"", LONG), lambda: next(a.stream(B, "endless", b"", LONG))):
        with pytest.raises(RemoteError) as failed:
            refused()
        assert 606 == failed.value.code
    a.send(B, [beat(1)])
    assert [beat(1)] == town.inboxes[B].wait(1)
    go_on.set()
    for thread in threads:
        thread.join(LONG)
    assert [b"done", b"done"] == done
    assert b"done" == a.call(B, "wait", b"", LONG)


# ---------------------------------------------------------------------- streams


class Tap:
    """An endless iterator of answers that records whether the server closed it."""

    def __init__(self, size: int = 4) -> None:
        self.closed = threading.Event()
        self._size = size

    def __call__(self, _: NodeId, __: bytes) -> Iterator[bytes]:
        try:
            while True:
                yield bytes(self._size)
        finally:
            self.closed.set()


def close_stream(answers: Iterator[bytes], _: GrpcPeers) -> None:
    answers.close()  # type: ignore[attr-defined]


def lose_client(_: Iterator[bytes], client: GrpcPeers) -> None:
    client.close()


@pytest.mark.parametrize("end", [close_stream, lose_client])
@pytest.mark.parametrize("size", [4, 4 << 20])
def test_the_servers_iterator_is_closed(town: Town, size: int, end: Callable[..., None]) -> None:
    # Large answers fill gRPC's window, so that the server waits while it sends.
    tap = Tap(size)
    a, _ = town.end(A), town.end(B, streams={"tap": tap})
    answers = a.stream(B, "tap", b"", LONG)
    assert size == len(next(answers))
    end(answers, a)
    assert tap.closed.wait(LONG)


def test_a_late_stream_closes_the_servers_iterator(town: Town) -> None:
    class Stuck:
        """An iterator whose `next` waits until another thread closes it."""

        begun, closed = threading.Event(), threading.Event()

        def __iter__(self) -> Iterator[bytes]:
            return self

        def __next__(self) -> bytes:
            self.begun.set()
            assert self.closed.wait(2 * LONG)
            raise StopIteration

        def close(self) -> None:
            self.closed.set()

    a, _ = town.end(A), town.end(B, streams={"stuck": lambda _, __: Stuck()})
    answers = a.stream(B, "stuck", b"", 0.1)
    assert Stuck.begun.wait(LONG)
    with pytest.raises(Unreachable):
        next(answers)
    assert Stuck.closed.wait(LONG)  # `close` is called before `__next__` gives up


def test_a_stream_is_asked_for_at_once_and_closed_unread(town: Town) -> None:
    begun, tap = threading.Event(), Tap()

    def stream(node: NodeId, request: bytes) -> Iterator[bytes]:
        begun.set()
        return tap(node, request)

    a, _ = town.end(A), town.end(B, streams={"tap": stream})
    answers = a.stream(B, "tap", b"", LONG)
    assert begun.wait(LONG)
    close_stream(answers, a)
    del answers
    assert tap.closed.wait(LONG)


def test_streams_run_beside_each_other(town: Town) -> None:
    a, _ = town.end(A), town.end(B, streams={"count": lambda _, r: (b"%s%d" % (r, n) for n in range(3))})
    streams = [a.stream(B, "count", name, LONG) for name in (b"a", b"b")]
    assert [(b"a0", b"b0"), (b"a1", b"b1"), (b"a2", b"b2")] == list(zip(*streams, strict=True))


def test_a_lost_server_ends_a_stream(town: Town) -> None:
    a, b = town.end(A), town.end(B, streams={"tap": Tap()})
    answers = a.stream(B, "tap", b"", LONG)
    next(answers)
    b.close()
    with pytest.raises(Unreachable):
        list(answers)


# ---------------------------------------------------------------------- start and close


def test_close_leaves_no_threads(town: Town) -> None:
    before = set(threading.enumerate())
    tap = Tap()
    a, b = town.end(A), town.end(B, calls={"echo": lambda _, r: r}, streams={"tap": tap})
    a.send(B, [beat(1)])
    b.send(A, [beat(1, B, A)])
    a.send(C, [beat(1, A, C)])
    town.inboxes[B].wait(1)
    a.call(B, "echo", b"", LONG)
    answers = a.stream(B, "tap", b"", LONG)
    next(answers)
    a.close()
    b.close()
    a.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(LONG)
    assert set() == set(threading.enumerate()) - before
    a.send(B, [beat(2)])
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"", LONG)
    with pytest.raises(Unreachable):
        next(answers)


def test_close_does_not_wait_for_an_address_that_answers_nothing(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_long = [("grpc.min_reconnect_backoff_ms", int(2_000 * LONG))]
    monkeypatch.setattr(
        channels, "_CHANNEL_OPTIONS", tuple((dict(channels._CHANNEL_OPTIONS) | dict(waits_long)).items())
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        town.addresses[B] = f"127.0.0.1:{silent.getsockname()[1]}"
        a = town.end(A)
        a.send(B, [beat(1)])
        connection, _ = silent.accept()
        closing = threading.Thread(target=a.close)
        closing.start()
        closing.join(LONG)
        connection.close()
        assert not closing.is_alive()


def test_other_machines_need_certificates(town: Town) -> None:
    a = town.end(A, listens=False)
    for host in ("0.0.0.0", "::", "10.0.0.1"):
        with pytest.raises(CannotListen, match="certificates"):
            a.start(host, 0, receive=Inbox().receive, calls={}, streams={})


def test_a_port_in_use_is_an_error(town: Town) -> None:
    town.end(A)
    b = town.end(B, listens=False)
    with pytest.raises(CannotListen):
        b.start("127.0.0.1", int(town.addresses[A].rpartition(":")[2]), receive=Inbox().receive, calls={}, streams={})


# ---------------------------------------------------------------------- certificates


class Authority:
    """A certificate authority that uses the openssl command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run("req -x509 -nodes -subj /CN=ca -days 2 -keyout ca.key -out ca.pem")
        self.ca = (folder / "ca.pem").read_bytes()

    def _run(self, arguments: str) -> None:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if arguments.startswith("req") else []
        subprocess.run(["openssl", *arguments.split(), *key], cwd=self._folder, check=True, capture_output=True)

    def sign(self, *names: str) -> PeerCredentials:
        (self._folder / "names").write_text("subjectAltName=" + ",".join(names))
        self._run("req -nodes -subj /CN=node -keyout node.key -out node.csr")
        self._run(
            "x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out node.pem -extfile names"
        )
        read = [(self._folder / name).read_bytes() for name in ("node.pem", "node.key")]
        return PeerCredentials(self.ca, *read)

    def of(self, node: NodeId, cluster: str = "plant") -> PeerCredentials:
        identity = Identity(cluster, node)
        return self.sign(f"URI:{identity.uri}", f"DNS:{identity.host_name}")


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    return Authority(tmp_path_factory.mktemp("ours")), Authority(tmp_path_factory.mktemp("theirs"))


def assert_nobody_is_heard(town: Town, client: GrpcPeers, error: type[Exception]) -> None:
    tries = threading.Semaphore(0)

    def address_of(node: NodeId) -> str | None:
        tries.release()
        return town.addresses.get(node)

    client._dialer._address_of = address_of
    client.send(B, [beat(1)])
    for _ in range(3):  # when the third attempt begins, two attempts have failed
        assert tries.acquire(timeout=LONG)
    for ask_b in (client.call, lambda *request: list(client.stream(*request))):
        with pytest.raises(error) as failed:
            ask_b(B, "echo", b"", LONG)
        assert error is Unreachable or 2019 == failed.value.code
    assert [] == town.inboxes[B].messages


def secure_server(town: Town, authority: Authority) -> None:
    calls = {"echo": lambda node, _: b"%d" % node}
    town.end(B, credentials=authority.of(B), calls=calls, streams={"echo": lambda n, _: iter([b"%d" % n])})


def test_nodes_with_certificates_of_the_cluster_talk(town: Town, authorities: tuple[Authority, Authority]) -> None:
    ours, _ = authorities
    secure_server(town, ours)
    a = town.end(A, credentials=ours.of(A))
    a.send(B, [beat(1)])
    assert [beat(1)] == town.inboxes[B].wait(1)
    assert b"1" == a.call(B, "echo", b"", LONG)
    assert [b"1"] == list(a.stream(B, "echo", b"", LONG))
    assert "PRIVATE" not in repr(a._credentials)


@pytest.mark.slow
@pytest.mark.speed  # by default, gRPC looks a name up again only after 30 s
def test_a_node_whose_name_has_another_address_is_reached_there(
    town: Town, authorities: tuple[Authority, Authority]
) -> None:
    ours, _ = authorities
    (port,) = free_ports(1)
    names = NameServer("127.0.0.2")

    def serve(host: str) -> tuple[GrpcPeers, Inbox]:
        peers = GrpcPeers(Identity("plant", B), town.addresses.get, ours.of(B), SystemClock())
        inbox = Inbox()
        peers.start(host, port, receive=inbox.receive, calls={"where": lambda _, __: host.encode()}, streams={})
        return peers, inbox

    def asked() -> bytes:
        try:
            return a.call(B, "where", b"", 1.0)
        except Unreachable:
            return b""

    a = town.end(A, credentials=ours.of(A))
    town.addresses[B] = f"dns://127.0.0.1:{names.port}/b.plant.test:{port}"
    first, inbox = serve("127.0.0.2")
    try:
        a.send(B, [beat(1)])
        assert [beat(1)] == inbox.wait(1)
        assert b"127.0.0.2" == a.call(B, "where", b"", LONG)
    finally:
        first.close()
    names.address = "127.0.0.3"
    moved_ns = town.clock.monotonic_ns()
    second, inbox = serve("127.0.0.3")
    try:
        wait_until(lambda: a.send(B, [beat(2)]) or inbox.messages)
        wait_until(lambda: asked() == b"127.0.0.3")
        assert town.clock.monotonic_ns() - moved_ns < 20_000_000_000
    finally:
        second.close()
        names.close()


def test_certificates_of_another_authority_are_refused(town: Town, authorities: tuple[Authority, Authority]) -> None:
    ours, theirs = authorities
    secure_server(town, ours)
    foreign = theirs.of(A)
    # The second client with a wrong certificate trusts the right authority, so the server must refuse the client.
    disguised = PeerCredentials(ours.ca, foreign.certificate, foreign.key)
    for credentials in (foreign, disguised):
        assert_nobody_is_heard(town, town.end(A, credentials=credentials, listens=False), Unreachable)


def test_callers_without_a_certificate_are_refused(town: Town, authorities: tuple[Authority, Authority]) -> None:
    ours, _ = authorities
    secure_server(town, ours)
    assert_nobody_is_heard(town, town.end(A, listens=False), Unreachable)
    channel = grpc.secure_channel(
        town.addresses[B],
        grpc.ssl_channel_credentials(ours.ca),
        [("grpc.ssl_target_name_override", Identity("plant", B).host_name)],
    )
    with channel, pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary(CALL_PATH)(b"", metadata=tuple(GOOD.items()), timeout=LONG)
    assert grpc.StatusCode.UNAVAILABLE is failed.value.code()


@pytest.mark.parametrize(
    "names", [["URI:saros://plant/node/3"], ["URI:saros://other/node/1"], ["DNS:node-1.plant.saros"]]
)
def test_a_certificate_of_somebody_else_is_refused(
    town: Town, authorities: tuple[Authority, Authority], names: list[str]
) -> None:
    ours, _ = authorities
    secure_server(town, ours)
    client = town.end(A, credentials=ours.sign(*names), listens=False)
    assert_nobody_is_heard(town, client, RemoteError)


def test_a_node_that_answers_for_another_is_noticed(town: Town, authorities: tuple[Authority, Authority]) -> None:
    # The server has a valid certificate of another node, but answers as node 2.
    ours, _ = authorities
    town.end(B, credentials=ours.of(C), calls={"echo": lambda _, r: r}, streams={"echo": lambda _, r: iter([r])})
    assert_nobody_is_heard(town, town.end(A, credentials=ours.of(A), listens=False), Unreachable)


@dataclass
class Renewed:
    """Credentials that a test replaces."""

    found: PeerCredentials

    def now(self) -> PeerCredentials:
        return self.found


@pytest.mark.slow
def test_new_connections_have_the_new_certificate(town: Town, authorities: tuple[Authority, Authority]) -> None:
    """A wrong certificate is refused until it is replaced, and a valid certificate may be renewed.

    This is true for clients and for servers.
    """
    ours, theirs = authorities
    caller, answerer = Renewed(theirs.of(A)), Renewed(ours.of(B))
    town.end(B, credentials=answerer, calls={"echo": lambda _, request: request})
    a = town.end(A, credentials=caller, listens=False)
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"", LONG)
    caller.found = ours.of(A)
    assert b"1" == a.call(B, "echo", b"1", LONG)
    answerer.found = ours.of(C)
    assert b"2" == a.call(B, "echo", b"2", LONG)  # this call uses the existing connection
    caller.found = ours.of(A)
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"", LONG)
    answerer.found = ours.of(B)
    caller.found = ours.of(A)
    assert b"3" == a.call(B, "echo", b"3", LONG)
    a.send(B, [beat(1)])
    assert [beat(1)] == town.inboxes[B].wait(1)

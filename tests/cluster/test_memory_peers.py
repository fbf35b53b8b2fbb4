"""The in-memory network gives the guarantees of `Peers`, and its random behaviour depends only on the seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from cluster.memory_peers import MemoryNetwork

from saros_cluster.multiraft.peers import Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId, Heartbeat, Message

A, B, C = NodeId(1), NodeId(2), NodeId(3)


def beat(number: int, sender: NodeId, receiver: NodeId) -> Message:
    return Heartbeat(GroupId(1), sender, receiver, 1, number, 0)


class Log:
    """The messages that have arrived, each with its receiver and the time of its arrival."""

    def __init__(self, network: MemoryNetwork) -> None:
        self.lines: list[tuple[int, NodeId, NodeId, int]] = []
        self._network = network

    def at(self, node: NodeId):
        def receive(sender: NodeId, messages: Sequence[Message]) -> None:
            self.lines += [(self._network.now, sender, node, message.commit) for message in messages]

        return receive


def played(seed: int, **options: object) -> Log:
    """Return the log of a network in which each of three nodes sends a hundred messages to the others."""
    network = MemoryNetwork(seed, **options)
    log = Log(network)
    ends: dict[NodeId, Peers] = {node: network.join(node, log.at(node)) for node in (A, B, C)}
    for number in range(100):
        for sender, end in ends.items():
            for receiver in (A, B, C):
                if receiver != sender:
                    end.send(receiver, [beat(number, sender, receiver)])
        network.run(number)
    while network.step():
        continue
    return log


def test_the_same_seed_is_the_same_run() -> None:
    assert played(1, loss=0.2).lines == played(1, loss=0.2).lines
    assert played(1, loss=0.2).lines != played(2, loss=0.2).lines


def test_messages_between_two_nodes_keep_their_order_and_others_do_not() -> None:
    lines = played(3, delay=(1, 50)).lines
    assert 600 == len(lines)
    by_pair: dict[tuple[NodeId, NodeId], list[int]] = {}
    for _, sender, receiver, number in lines:
        by_pair.setdefault((sender, receiver), []).append(number)
    assert [list(range(100))] * 6 == list(by_pair.values())
    numbers = [number for _, _, _, number in lines]
    assert sorted(numbers) != numbers
    assert sorted(lines, key=lambda line: line[0]) == lines


def test_some_are_lost() -> None:
    assert 400 < len(played(4, loss=0.2).lines) < 560
    assert [] == played(4, loss=1.0).lines


def test_a_cut_is_one_way_and_takes_what_is_on_its_way() -> None:
    network = MemoryNetwork(1)
    log = Log(network)
    a, b = network.join(A, log.at(A)), network.join(B, log.at(B))
    a.send(B, [beat(1, A, B)])
    b.send(A, [beat(2, B, A)])
    network.cut(A, B)
    network.run(100)
    assert [(B, A, 2)] == [line[1:] for line in log.lines]
    network.heal()
    a.send(B, [beat(3, A, B)])
    network.run(200)
    assert [(B, A, 2), (A, B, 3)] == [line[1:] for line in log.lines]
    assert (2, 1) == (network.delivered, network.lost)


def test_calls_and_streams_are_answered() -> None:
    network = MemoryNetwork(1)
    a = network.join(A, Log(network).at(A))
    closed: list[bytes] = []

    def count(node: NodeId, request: bytes) -> Iterator[bytes]:
        try:
            yield from (request, b"%d" % node)
        finally:
            closed.append(request)

    network.join(B, Log(network).at(B), {"who": lambda node, request: b"%d %s" % (node, request)}, {"count": count})
    assert b"1 x" == a.call(B, "who", b"x", 1.0)
    assert [b"x", b"1"] == list(a.stream(B, "count", b"x", 1.0))
    answers = a.stream(B, "count", b"y", 1.0)
    assert b"y" == next(answers)
    answers.close()
    assert [b"x", b"y"] == closed
    for name in ("call", "stream"):
        with pytest.raises(RemoteError) as failed:
            getattr(a, name)(B, "other", b"", 1.0)
        assert 2002 == failed.value.code


class Full(Exception):
    code = 611


def test_errors_of_handlers_are_those_of_the_border() -> None:
    def fail(_: NodeId, request: bytes) -> bytes:
        raise Full("full") if request else KeyError("bug")

    def fail_later(node: NodeId, request: bytes) -> Iterator[bytes]:
        yield fail(node, request)

    network = MemoryNetwork(1)
    a = network.join(A, Log(network).at(A))
    network.join(B, Log(network).at(B), {"fail": fail}, {"fail": fail_later})
    for request, code in ((b"x", 611), (b"", 2001)):
        for ask in (a.call, lambda *arguments: list(a.stream(*arguments))):
            with pytest.raises(RemoteError) as failed:
                ask(B, "fail", request, 1.0)
            assert (B, code) == (failed.value.node, failed.value.code)


def test_a_cut_of_the_answer_lets_the_handler_run() -> None:
    network = MemoryNetwork(1)
    ran: list[bytes] = []
    a = network.join(A, Log(network).at(A))
    network.join(B, Log(network).at(B), {"x": lambda _, r: ran.append(r) or b""}, {"x": lambda _, r: iter([r, r])})
    network.cut(A, B)
    for ask in (a.call, a.stream):
        with pytest.raises(Unreachable):
            ask(B, "x", b"1", 1.0)
    assert [] == ran
    network.heal()
    answers = a.stream(B, "x", b"", 1.0)
    next(answers)
    network.cut(B, A)
    with pytest.raises(Unreachable):
        next(answers)
    with pytest.raises(Unreachable):
        a.call(B, "x", b"2", 1.0)
    assert [b"2"] == ran


def test_a_crashed_node_is_silent_until_it_begins_again() -> None:
    network = MemoryNetwork(1)
    log = Log(network)
    a, b = network.join(A, log.at(A)), network.join(B, log.at(B), {"echo": lambda _, request: request})
    b.send(A, [beat(1, B, A)])
    a.send(B, [beat(2, A, B)])
    network.leave(B)
    network.run(100)
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"", 1.0)
    network.join(B, log.at(B), {"echo": lambda _, request: request})
    assert b"x" == a.call(B, "echo", b"x", 1.0)
    network.isolate(B)
    with pytest.raises(Unreachable):
        a.call(B, "echo", b"", 1.0)
    assert [(B, A, 1)] == [line[1:] for line in log.lines]

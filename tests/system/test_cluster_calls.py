"""A node's answers to other nodes: strangers get no answer, and malformed requests get an error code.

The node's groups survive all requests. The tests try every call and stream that a node registers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from system.town import WEEK, Town, a_town
from waiting import wait_until

from saros_cluster.multiraft.peers import RemoteError
from saros_cluster.placement.ring import NodeId
from saros_cluster.routing.proposer import PROPOSE
from saros_cluster.transport.grpc_peers import GrpcPeers
from saros_cluster.transport.handshake import Identity
from saros_server.cluster.node import ClusterNode
from saros_storage.base.clock import SystemClock
from saros_storage.base.types import DataType
from saros_wire.status import STATUS

pytestmark = pytest.mark.slow

ONE, TWO = NodeId(1), NodeId(2)
WRONG_CLUSTER, INTERNAL = 2019, 2001


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Yield a cluster whose nodes have already made a request of every kind."""
    with a_town(tmp_path_factory.mktemp("town"), 3, 2) as town:
        for number in range(3):
            for group in town.routing().groups:
                device = f"{town.database(group)}.d"
                town.nodes.run(number, f"insert into {device}(time, x, y) values (1, 1, 'a'), ({WEEK}, 2, 'b')")
                town.nodes.run((number + 1) % 3, f"select x, y from {device}")
        town.nodes.run(0, "flush")
        town.nodes.run(0, "create database root.gone")
        town.nodes.run(0, "drop database root.gone")
        wait_until(lambda: "status" in town.weather.samples)
        yield town


def handlers(town: Town) -> dict[str, Callable[[NodeId, bytes], object]]:
    """Return the handlers of node 1. The handler of a stream returns only the first three answers."""
    found: dict[str, Callable[[NodeId, bytes], object]] = dict(town.weather.calls[ONE])
    for name, stream in town.weather.streams[ONE].items():
        found[name] = lambda sender, request, stream=stream: list(itertools.islice(stream(sender, request), 3))
    return found


def code_of(handler: Callable[[NodeId, bytes], object], request: bytes) -> int | None:
    """Return the error code of a refusal; None if the call is answered."""
    try:
        handler(TWO, request)
    except Exception as error:  # noqa: BLE001 (the test is about the kinds of errors)
        return getattr(error, "code", INTERNAL)
    return None


def junk(town: Town, name: str) -> Iterator[bytes]:
    """Yield an empty request, noise, and real requests with bytes changed, removed, or inserted."""
    chance = random.Random(name)
    yield from (b"", b"\0", b"{}", b"[]", b"null", b"\xff" * 64, b'{"group": 1}', b'{"group": [], "known": {}}')
    for size in (1, 7, 8, 9, 16, 24, 40, 100, 1_000):
        yield chance.randbytes(size)
    sample = town.weather.samples.get(name)
    if sample is not None:
        for _ in range(150):
            yield _changed(sample, chance)


def _changed(sample: bytes, chance: random.Random) -> bytes:
    data = bytearray(sample)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(3):
            case 0:
                data[place : place + 1] = chance.randbytes(1)
            case 1:
                del data[place:]
            case 2:
                data[place:place] = chance.randbytes(chance.randint(1, 9))
    return bytes(data)


def test_junk_is_refused_with_a_code_and_harms_nothing(town: Town) -> None:
    device = f"{town.database(town.routing().groups[0])}.d"
    town.insert(0, device, [1, WEEK], [1, 2], DataType.INT64)
    found: dict[str, set[int | None]] = {}
    for name, handler in handlers(town).items():
        found[name] = {code_of(handler, request) for request in junk(town, name)}
    for name, codes in found.items():
        assert codes - {None} <= STATUS.keys(), name
        assert INTERNAL not in codes, name
    for number in range(3):
        assert {} == town.host(number).failures
    assert [[(1, 1), (WEEK, 2)]] * 3 == town.on_all(f"select x from {device}")
    town.insert(1, device, [2], [3], DataType.INT64)
    assert [[(3,)]] * 3 == town.on_all(f"select count(x) from {device}")


def test_strangers_are_answered_nothing(town: Town) -> None:
    """Nodes of another cluster, and calls for another node, are refused before the request is decoded."""
    cluster = town.nodes.node(0).cluster
    assert isinstance(cluster, ClusterNode)
    address = town.routing().topology.nodes[ONE].peer
    before = town.ends()
    for identity, meant in (
        (Identity("another-cluster", TWO), ONE),
        (Identity(cluster.status._identity.cluster, TWO), NodeId(3)),
    ):
        peers = GrpcPeers(identity, lambda _: address, None, SystemClock())
        try:
            for name in town.weather.calls[ONE]:
                with pytest.raises(RemoteError) as caught:
                    peers.call(meant, name, town.weather.samples.get(name, b""), 10)
                assert WRONG_CLUSTER == caught.value.code
            for name in town.weather.streams[ONE]:
                with pytest.raises(RemoteError) as caught:
                    list(peers.stream(meant, name, town.weather.samples.get(name, b""), 10))
                assert WRONG_CLUSTER == caught.value.code
        finally:
            peers.close()
    assert before == town.ends()


def test_a_command_that_cannot_be_read_does_not_get_into_a_log(town: Town) -> None:
    propose, before = town.weather.calls[ONE][PROPOSE], town.ends()
    group = town.routing().groups_of(ONE)[0]
    for about in (0, group):
        head = int(about).to_bytes(8, "little")
        for command in (b"", b"\0" * 24, b"\0" * 15, b"\1" * 200, b"\0" * 24 + b"\1\0\0\0" * 40):
            with pytest.raises(Exception) as caught:
                propose(TWO, head + command)
            assert 2003 == getattr(caught.value, "code", None), (about, command)
    assert before == town.ends()


def test_the_folder_of_a_node_is_not_on_the_wire(town: Town, tmp_path: Path) -> None:
    """No answer contains a path on the node's machine."""
    folder = str(town.nodes.folders[0].parent).encode()
    for name, handler in handlers(town).items():
        for request in junk(town, name):
            try:
                answer = repr(handler(TWO, request)).encode()
            except Exception as error:  # noqa: BLE001 (the test checks every error text)
                answer = str(error).encode()
            assert folder not in answer, name

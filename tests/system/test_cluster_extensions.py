"""Users' functions and triggers on a cluster: every node must have and call them, and a restart keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.installed_package import install_example
from system.cluster_fixture import Nodes
from waiting import wait_until

from saros_cluster.multiraft.peers import RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_server.cluster.extension_check import INSTALLED, ExtensionCheck, serve_installed
from saros_storage.base.errors import StorageError, UserMistake


@pytest.mark.slow
def test_every_node_calls_what_one_has_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(monkeypatch, tmp_path / "installed")
    cluster = Nodes(tmp_path, 3, 3)

    def refused(number: int, value: int) -> bool:
        try:
            cluster.run(number, f"insert into root.a.d{number}(time, t) values ({value}, {value})")
        except UserMistake as error:
            return error.code == 1302
        return False

    def refusal() -> str:
        with pytest.raises(StorageError) as refused:  # the first error may be that a group has no leader yet
            cluster.run(0, "create function g as 'fahrenheit'")
        return refused.value.message

    try:
        cluster.run(0, "create function f as 'fahrenheit'")
        cluster.run(1, "create trigger hot before insert on root.a.** as 'limits' with ('high'='100')")
        for number in range(3):
            cluster.run(number, f"insert into root.a.d{number}(time, t) values (1, {number * 10})")
            wait_until(lambda n=number: refused(n, 1_000))
        cluster.restart_all()
        for number in range(3):
            assert [(1, 32.0, 50.0, 68.0)] == cluster.run(number, "select f(t) from root.a.* where time = 1")
            assert refused(number, 1_001)
            assert [("hot", "BEFORE_INSERT", "ACTIVE")] == [
                (row[0], row[1], row[3]) for row in cluster.run(number, "show triggers")
            ]
        with pytest.raises(UserMistake, match="no installed package has the entry point 'nobody'"):
            cluster.run(2, "create function g as 'nobody'")
        cluster.stop(2)
        wait_until(lambda: "node 3 does not say whether it has 'fahrenheit'" in refusal())
    finally:
        cluster.close()


class _Routing:
    nodes = (NodeId(1), NodeId(2), NodeId(3))


class _Routes:
    now = _Routing()


class _FakePeers:
    """Peers that give planned answers. A node whose planned error is None has the module."""

    def __init__(self, answers: dict[int, Exception | None]) -> None:
        self.answers = answers
        self.asked: list[tuple[int, str, bytes]] = []

    def call(self, node: NodeId, name: str, request: bytes, timeout_s: float) -> bytes:
        self.asked.append((node, name, request))
        if self.answers[node] is not None:
            raise self.answers[node]
        return b""


@pytest.mark.parametrize(
    ("group", "answer", "code", "words"),
    [
        ("saros.functions", RemoteError(NodeId(3), 1200, "no installed package has 'f'"), 1200, "node 3: no installed"),
        ("saros.triggers", Unreachable(NodeId(3), "refused"), 1303, "node 3 does not say whether it has 'f'"),
    ],
)
def test_the_node_that_lacks_it_is_named(group: str, answer: Exception, code: int, words: str) -> None:
    peers = _FakePeers({2: None, 3: answer})
    with pytest.raises(UserMistake, match=words) as lacking:
        ExtensionCheck(NodeId(1), _Routes(), peers).require(group, "f")
    assert code == lacking.value.code
    assert [(2, INSTALLED), (3, INSTALLED)] == [asked[:2] for asked in peers.asked]


def test_a_node_looks_for_itself_when_it_is_asked() -> None:
    with pytest.raises(UserMistake, match="the entry point 'nowhere' in the group"):
        serve_installed(NodeId(1), b'["saros.functions", "nowhere"]')

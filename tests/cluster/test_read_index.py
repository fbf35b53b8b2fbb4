"""Which groups a read asks, and how long it waits for those without a leader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.database.read_index import STRONG_SECONDS, ReadBarrier, databases_matching
from saros_cluster.multiraft.peers import Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.availability import PATIENCE_SECONDS, WAITING_MAX, Availability
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META, Node, Topology
from saros_storage.scan.read_point import ReadPoint, ReadScope
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import CreateDatabase, SchemaTree

NODES = [NodeId(1), NodeId(2), NodeId(3)]


class Cluster:
    """Three nodes, each with a group of its own, as node 1 sees them; node 3 is gone. Calls take virtual time."""

    def __init__(self) -> None:
        self.elapsed_ns = 0
        self.availability = Availability(self)
        topology = Topology.first({node: Node(f"h{node}:1", f"h{node}:2") for node in NODES}, 1, 16)
        self.routes = Routes(topology, 100)
        nothing: Any = SimpleNamespace(machines={})
        host: Any = SimpleNamespace(read=self._confirm)
        self.schema = ClusterSchema()
        self.barrier = ReadBarrier(
            host,
            self,  # type: ignore[arg-type]
            self,
            self.routes,
            nothing,
            self.schema,
            ThreadPoolExecutor(4),
            lambda node: node == 3,
            NODES[0],
            self.availability,
        )

    def _confirm(self, _: GroupId) -> Future[int | None]:
        confirmed: Future[int | None] = Future()
        confirmed.set_result(7)
        return confirmed

    def now_ns(self) -> int:
        return self.elapsed_ns

    def monotonic_ns(self) -> int:
        return self.elapsed_ns

    def call(self, node: NodeId, name: str, request: bytes, seconds: float) -> bytes:
        if node == 3:
            self.elapsed_ns += int(seconds * 1e9)
            raise Unreachable(node, "gone")
        return json.dumps({"index": 7, "schema": SchemaDelta(7, True, ()).to_json()}).encode()

    def waited_s(self, *groups: int) -> float:
        """How long a request waits that fails."""
        began_ns = self.elapsed_ns
        with pytest.raises(NoLeader, match=r"group 3 \(node 3\)"):
            self.barrier.catch_up(map(GroupId, groups), STRONG_SECONDS)
        return (self.elapsed_ns - began_ns) / 1e9


def test_waits_for_a_lost_group_are_short_and_few() -> None:
    cluster = Cluster()
    assert STRONG_SECONDS == cluster.waited_s(2, 3)
    cluster.elapsed_ns += int(20e9)
    assert pytest.approx(PATIENCE_SECONDS) == cluster.waited_s(2, 3)
    for _ in range(WAITING_MAX):
        cluster.availability.take_place()
    assert 0 == cluster.waited_s(2, 3)
    assert {2: 7} == cluster.barrier.catch_up([GroupId(2)], STRONG_SECONDS)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("root.a.d1", ["root.a"]),
        ("root.a.**", ["root.a"]),
        ("root.a*.d", ["root.a", "root.ab"]),
        ("root.b", ["root.b.c", "root.b.d"]),
        ("root.b.*.x", ["root.b.c", "root.b.d"]),
        ("root.*.c", ["root.a", "root.ab", "root.b.c"]),
        ("root.**.x", ["root.a", "root.ab", "root.b.c", "root.b.d"]),
        ("root", ["root.a", "root.ab", "root.b.c", "root.b.d"]),
        ("root.z.**", []),
    ],
)
def test_a_pattern_concerns_the_databases_that_it_may_reach(pattern: str, expected: list[str]) -> None:
    tree = SchemaTree()
    for path in ("root.a", "root.ab", "root.b.c", "root.b.d"):
        tree.apply(CreateDatabase(path))
    assert expected == databases_matching(pattern, tree)


class Counted(list[tuple[str, TimeRange]]):
    """Sources that count how often they are gone through."""

    times = 0

    def __iter__(self) -> Iterator[tuple[str, TimeRange]]:
        self.times += 1
        return super().__iter__()


def test_a_read_goes_through_its_sources_once_and_again_only_if_the_schema_changes() -> None:
    cluster = Cluster()
    cluster.schema.agree(["root.a", "root.b"], {}, 1, partitions := {"root.a": {0: 1}, "root.b": {}})
    owner = cluster.routes.now.group_at("root.a", 0)
    sources = Counted([("root.a.d1", TimeRange()), ("root.a.d2", TimeRange())])
    extent = cluster.barrier.resolve(ReadScope((), sources))
    point = ReadPoint(strong=True, current=True)
    assert cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert (["root.a"], {META: 7, owner: 7}, 1) == (extent.databases, point.applied, sources.times)
    cluster.schema.agree(["root.a", "root.b", "root.c"], {}, 2, partitions)
    assert not cluster.barrier.catch_up_with(point, extent, STRONG_SECONDS)
    assert 2 == sources.times

"""A town: a cluster with controlled network faults and leaders, for tests of a cluster's guarantees."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from stopped_clock import StoppedClock
from system.cluster_fixture import Nodes
from system.faulty_peers import Calls, Weather
from waiting import wait_until

from saros_cluster.database.database import ClusterDatabase
from saros_cluster.database.read_index import CATCH_UP
from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.log_latency import LogHealth, LogLatency
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.proposer import PROPOSE
from saros_cluster.routing.routing import Routing
from saros_cluster.topology.topology import META
from saros_engine.base.session_context import SessionContext
from saros_engine.execution.result import Result
from saros_server.cluster.leader_balancing import LeaderBalancing
from saros_server.node.node import Node
from saros_server.server import Server
from saros_storage.base.block import Column
from saros_storage.base.errors import StorageError
from saros_storage.base.types import DataType
from saros_storage.base.write_request import UNNUMBERED, WriteRequest

WEEK = 604_800_000


class Served(Nodes):
    """Nodes with a port for clients."""

    def __init__(self, folder: Path, nodes: int, replicas: int) -> None:
        self.servers: dict[int, Server] = {}
        super().__init__(folder, nodes, replicas)

    def start(self, number: int) -> Node:
        (self.folders[number] / "saros.toml").write_text('durability = "os"\nworker_threads = 1\n')
        server = self.servers[number] = Server(str(self.folders[number]), "127.0.0.1", 0)
        server.start()
        node = self.nodes[number] = server.api.node
        return node

    def stop(self, number: int) -> None:
        self.nodes[number] = None
        self.servers.pop(number).stop()


class Clocked(Nodes):
    """Nodes, each of which has a separate clock."""

    def __init__(self, folder: Path, nodes: int, replicas: int) -> None:
        self.clocks = [StoppedClock() for _ in range(nodes)]
        super().__init__(folder, nodes, replicas)

    def start(self, number: int) -> Node:
        node = self.nodes[number] = Node.open(str(self.folders[number]), self.configuration, clock=self.clocks[number])
        return node


class Town:
    """A cluster with controlled network faults (its weather) and leaders. Node numbers begin at 0, node ids at 1."""

    def __init__(self, nodes: Nodes, weather: Weather) -> None:
        self.nodes = nodes
        self.weather = weather
        self._names = (f"root.r{n}" for n in itertools.count())
        #: A database in each group.
        self._known = [self.database(group) for group in self.routing().groups]

    def database_of(self, number: int) -> ClusterDatabase:
        return self.nodes.database(number)

    def host(self, number: int) -> GroupHost:
        return self.database_of(number)._parts.host

    def routing(self) -> Routing:
        return self.database_of(self.running[0]).routing

    @property
    def running(self) -> list[int]:
        return [number for number, node in enumerate(self.nodes.nodes) if node is not None]

    # ------------------------------------------------------------------ names

    def database(self, group: GroupId, other: GroupId | None = None, *, elsewhere: bool = False) -> str:
        """Return a new name whose schema and first slice belong to `group`.

        The second slice belongs to `other` if that is given, to any other group if `elsewhere`, and otherwise to
        `group`.
        """
        routing = self.routing()
        for name in self._names:
            second = routing.group_at(name, 1)
            fits = second == other if other is not None else (second == group) != elsewhere
            if routing.schema_group(name) == group and fits:
                return name
        raise AssertionError

    # ------------------------------------------------------------------ leaders

    def arrange_leaders(self, of_all: int | None = None) -> None:
        """Let each group's head lead it, and let node 2 lead the meta group; with `of_all`, that node leads all groups.

        Wait until all nodes know the leaders.
        """
        wanted = {GroupId(group): NodeId(group) for group in self.routing().groups}
        wanted[META] = NodeId(2)
        if of_all is not None:
            wanted = dict.fromkeys(wanted, NodeId(of_all + 1))
        wait_until(lambda: all(self._leads(group, node) for group, node in wanted.items()))

    def _leads(self, group: GroupId, node: NodeId) -> bool:
        known = {number: self.host(number).status(group) for number in self.running}
        if all(status is None or status.leader == node for status in known.values()):
            return True
        for number, status in known.items():
            if status is not None and status.leader == NodeId(number + 1):
                self.host(number).transfer(group, node)
        return False

    def meet_leaders(self, coordinator: int) -> None:
        """Write from a node to each group, so that the node learns the leaders of all groups."""
        for known in self._known:
            self.nodes.run(coordinator, f"insert into {known}.d(time, x) values (1, 1)")

    def terms(self) -> list[int]:
        groups = (META, *self.routing().groups)
        return [max(s.term for n in self.running if (s := self.host(n).status(g)) is not None) for g in groups]

    def ends(self) -> Counter[str]:
        """Return the commit index of the meta group, and the sum of the commit indexes of all data groups."""
        found: Counter[str] = Counter()
        for group in (META, *self.routing().groups):
            last = max(s.commit for n in self.running if (s := self.host(n).status(group)) is not None)
            found["meta" if group == META else "data"] += last
        return found

    def measure(self, coordinator: int, prepare: Callable[[], Callable[[], object]]) -> tuple[Calls, dict[str, int]]:
        """Run the function that `prepare` returns; return its calls and the number of new log entries of each kind.

        Repeat the measurement if there was an election meanwhile.
        """
        while True:
            self.arrange_leaders()
            self.meet_leaders(coordinator)
            act = prepare()
            terms, before = self.terms(), self.ends()
            with self.weather.counting() as calls:
                act()
            if terms == self.terms():
                return _of_writes(calls), dict(self.ends() - before)

    # ------------------------------------------------------------------ statements

    def on_all(self, text: str) -> list[list[tuple[object, ...]]]:
        """Return a statement's rows from each node. A SHOW that leaves out a group on a busy machine is repeated."""
        return [self._complete(number, text) for number in self.running]

    def _complete(self, number: int, text: str) -> list[tuple[object, ...]]:
        answers: list[list[tuple[object, ...]]] = []

        def is_complete() -> bool:
            rows, result = self._answer(number, text, "strong")
            answers.append(rows)
            return not result.missing

        wait_until(is_complete)
        return answers[-1]

    def read(self, number: int, text: str, consistency: str) -> tuple[list[tuple[object, ...]], bool]:
        """Return a query's rows (times first), and True if they may be stale."""
        rows, result = self._answer(number, text, consistency)
        return rows, result.stale

    def _answer(self, number: int, text: str, consistency: str) -> tuple[list[tuple[object, ...]], Result]:
        result = self.nodes.node(number).engine.execute(text, SessionContext(consistency=consistency))
        rows: list[tuple[object, ...]] = []
        while (block := result.next_block()) is not None:
            columns = [block.times.tolist()] if result.timed else []
            rows += zip(*columns, *(column.to_list() for column in block.columns), strict=True)
        result.close()
        return rows, result

    def insert(
        self,
        number: int,
        device: str,
        times: list[int],
        values: list[object],
        type_: DataType,
        request: WriteRequest = UNNUMBERED,
    ) -> int:
        """Insert a batch of measurement x."""
        column = Column.of(type_, values)
        return self.nodes.node(number).engine.insert_columns(device, np.array(times), {"x": column}, request=request)


def _of_writes(calls: Calls) -> Calls:
    return Counter({key: count for key, count in calls.items() if key[0] in (PROPOSE, CATCH_UP)})


@contextmanager
def a_town(folder: Path, nodes: int, replicas: int, kind: type[Nodes] = Nodes) -> Iterator[Town]:
    """Run a cluster within this context; it does not balance leaders, since the test chooses them."""
    weather = Weather()
    with (
        weather.around_nodes(),
        mock.patch.object(LeaderBalancing, "due", return_value=[]),
        mock.patch.object(LogLatency, "check", return_value=LogHealth()),
    ):
        cluster = kind(folder, nodes, replicas)
        try:
            yield Town(cluster, weather)
        finally:
            weather.heal()
            cluster.close()


def at_once(*actions: Callable[[], object]) -> list[object]:
    """Run the actions concurrently; return their results or exceptions."""
    start = threading.Barrier(len(actions))

    def run(action: Callable[[], object]) -> object:
        start.wait()
        try:
            return action()
        except StorageError as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))

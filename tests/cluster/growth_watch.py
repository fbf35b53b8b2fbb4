"""A change to a cluster of real processes, and the duration of each of its stages.

    begin(cluster, "add node 4") -> Watch       poll() until it returns None -> Grown
    Watch(...).begin()                          to begin on another thread, if a node may be stopped before it answers

The nodes are polled every few milliseconds, so a shorter stage may be missed. A test that measures load polls the nodes
less often, since each answer costs a node some work. Only one thread at a time may use a watch, except for `begin`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from system.local_cluster import LocalCluster, NodeFailed

import saros

_POLL_SECONDS, _MEASURED_POLL_SECONDS = 0.005, 0.1
_ASK_SECONDS = 5.0
CHANGE_SECONDS_MAX = 120.0
#: The stages after which all slots have moved to the new nodes' groups and are served there.
_STAGE_ONE = ("preparing", "moving")


@dataclass(frozen=True, slots=True)
class Grown:
    """The result of a change that has ended."""

    statement: str
    began_ns: int
    ended_ns: int
    #: The duration of each observed stage, in seconds.
    stages: dict[str, float]
    #: The number of slots that moved.
    slots: int
    #: The time from the beginning until all nodes had their files; None if the watch did not observe that moment.
    arrived_s: float | None

    @property
    def seconds(self) -> float:
        """The duration of the whole change."""
        return (self.ended_ns - self.began_ns) / 1e9

    @property
    def stage_one_s(self) -> float:
        """The time from the beginning until the slots belong to their new groups."""
        return sum(self.stages.get(stage, 0.0) for stage in _STAGE_ONE)

    def text(self) -> str:
        """Return the result as one line of text."""
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in self.stages.items())
        return f"{self.statement}: {self.seconds:.2f} s ({stages}), {self.slots} slots"


@dataclass(slots=True)
class Watch:
    """A change that is about to begin, or in progress."""

    cluster: LocalCluster
    statement: str
    leaving: int | None = None
    began_ns: int = field(default_factory=time.monotonic_ns)
    #: The moment at which each stage was first seen, in order.
    seen_ns: dict[str, int] = field(default_factory=dict)
    slots: int = 0
    arrived_ns: int | None = None
    connections: dict[int, saros.Connection] = field(default_factory=dict)

    def begin(self) -> None:
        """Send the statement to a node that is up. Any thread may call this. Raises saros.Error."""
        target = "saros://" + ",".join(self.cluster.address(node) for node in self.cluster.up if node != self.leaving)
        with saros.connect(target) as connection:
            connection.execute(self.statement)

    def poll(self) -> str | None:
        """Return the current stage, or None if no running node reports a change in progress.

        The leaving node is not asked: it is not informed when the change has ended.
        """
        for node in [node for node in self.cluster.up if node != self.leaving]:
            try:
                rows = self._ask(node)
            except saros.Error:
                continue  # another node may answer
            if rows:
                return self._see(rows[0])
        return None

    def _see(self, row: dict[str, object]) -> str:
        now_ns, stage = time.monotonic_ns(), str(row["Stage"])
        moves, arrived, slots = (int(str(row[name])) for name in ("Moves", "Arrived", "Slots"))
        self.slots = max(self.slots, slots)
        self.seen_ns.setdefault(stage, now_ns if self.seen_ns else self.began_ns)
        if self.arrived_ns is None and moves and arrived == moves:
            self.arrived_ns = now_ns
        return stage

    def _ask(self, node: int) -> list[dict[str, object]]:
        """Return the rows of SHOW CLUSTER CHANGE: at most one row."""
        if node not in self.connections:
            target = f"saros://{self.cluster.address(node)}"
            self.connections[node] = saros.connect(target, failover_s=0, timeout=_ASK_SECONDS)
        try:
            rows: list[dict[str, object]] = (
                self.connections[node].execute("show cluster change").fetch_arrow().to_pylist()
            )
        except saros.Error:
            self.connections.pop(node).close()
            raise
        return rows

    def wait(self, until: Callable[[str], bool] = lambda _: False, pause_s: float = _POLL_SECONDS) -> str | None:
        """Wait until the current stage satisfies `until`, and return it; None if the change ends first.

        Raises NodeFailed.
        """
        limit = time.monotonic() + CHANGE_SECONDS_MAX
        while (stage := self.poll()) is not None and not until(stage):
            if time.monotonic() > limit:
                raise NodeFailed(f"{self.statement}: still {stage} after {CHANGE_SECONDS_MAX:.0f} s")
            time.sleep(pause_s)
        return stage

    def grown(self) -> Grown:
        """Return the result, after the change has ended."""
        ended_ns = time.monotonic_ns()
        for connection in self.connections.values():
            connection.close()
        moments = [*self.seen_ns.values(), ended_ns]
        stages = {stage: (moments[i + 1] - moments[i]) / 1e9 for i, stage in enumerate(self.seen_ns)}
        arrived_s = None if self.arrived_ns is None else (self.arrived_ns - self.began_ns) / 1e9
        return Grown(self.statement, self.began_ns, ended_ns, stages, self.slots, arrived_s)


def begin(cluster: LocalCluster, statement: str, leaving: int | None = None) -> Watch:
    """Begin a change. Raises saros.Error."""
    watch = Watch(cluster, statement, leaving)
    watch.begin()
    return watch


def add(cluster: LocalCluster, count: int = 1) -> Grown:
    """Add `count` nodes. Raises saros.Error, NodeFailed."""
    nodes = [cluster.admit() for _ in range(count)]
    for node in nodes:  # in sequence, like `saros cluster add-node`
        cluster.start([node])
        cluster.wait_ready([node])
    return _change(cluster, f"add node {', '.join(map(str, nodes))}")


def remove(cluster: LocalCluster, node: int) -> Grown:
    """Remove a node from the cluster. Raises saros.Error, NodeFailed."""
    grown = _change(cluster, f"remove node {node}", node)
    cluster.forget(node)
    return grown


def _change(cluster: LocalCluster, statement: str, leaving: int | None = None) -> Grown:
    watch = begin(cluster, statement, leaving)
    watch.wait(pause_s=_MEASURED_POLL_SECONDS)
    return watch.grown()

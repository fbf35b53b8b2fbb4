"""Faults in a cluster of real processes while a node joins: points x roles x kinds, each injected at an exact moment.

    point    a step that a node has just taken (`tests/cluster/faulted_node.py`), at which it stops itself
    role     the leader of the meta group, another existing node, or the joining node
    kind     kill     SIGKILL, and a restart after a second
             lose     SIGKILL; the node is declared lost, and removed or replaced by a new one
             pause    the node stops for six seconds, longer than an election takes
             cut      the node continues, without any messages for six seconds
             full     the node continues, with a full disk for six seconds

In every case the change must end, completed or aborted, and no node may keep a superfluous group, a file in transit or
a snapshot. If no node of the role reaches a point before the change ends, the report says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cluster import faulted_node as befallen_node
from cluster.growth_watch import CHANGE_SECONDS_MAX, Watch, begin, remove
from system.local_cluster import LocalCluster, NodeFailed

import saros

LEADER, OTHER, JOINER = "the leader of the meta group", "another one", "the one that joins"
KINDS = ("kill", "lose", "pause", "cut", "full")
#: For each point, the roles that reach it. Points of data groups lack the role of the meta leader, because that node is
#: an ordinary member of data groups.
POINT_ROLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(befallen_node.META_STEPS, (LEADER, OTHER, JOINER)),
    "a group begins": (OTHER, JOINER),
    "a snapshot is installed": (JOINER,),
    "slots are fenced": (OTHER,),
    "slots are opened": (OTHER, JOINER),
    "slots are captured": (OTHER,),
    "a file is pulled": (JOINER,),
    "all is pulled": (JOINER,),
    "files are linked": (OTHER, JOINER),
    "files have arrived": (OTHER, JOINER),
    "slots are let go of": (OTHER,),
    "a move is settled": (OTHER, JOINER),
    "members are proposed": (OTHER,),
    "a group is left": (OTHER,),
}
#: The program of a node.
PROGRAM = (sys.executable, "-P", befallen_node.__file__)
PAUSE_SECONDS, AWAY_SECONDS = 6.0, 1.0
_RETRY_SECONDS, _POLL_SECONDS = 0.2, 0.02
#: Time after the end of a change in which nodes may still reach a point: a removed replica is deleted late.
_LATE_SECONDS = 5.0
#: Time after which no superfluous data may be left: if a puller was killed, captured files stay until their lease ends.
_LEFT_SECONDS_MAX = 90.0
#: Folders of a node for data in transit.
_PASSING = ("arriving", "snapshots")


@dataclass(frozen=True, slots=True)
class Case:
    """A fault: its point, role and kind."""

    point: str
    role: str
    kind: str

    def text(self) -> str:
        return f"{self.kind}: {self.role}, at {self.point!r}"


CASES = [Case(point, role, kind) for point, roles in POINT_ROLES.items() for role in roles for kind in KINDS]


class Matrix:
    """Injects cases into a cluster whose nodes run `PROGRAM`, and which can lose one node. Single-threaded."""

    def __init__(self, cluster: LocalCluster, nodes: int) -> None:
        """Make a matrix for a cluster that has `nodes` nodes before and after each case."""
        self._cluster = cluster
        self._nodes = nodes

    def befall(self, case: Case) -> int | None:
        """Run one case, from a node's admission to the end of the change; return the node that had the fault.

        Returns None if no node of the role reached the point. Raises NodeFailed, saros.Error.
        """
        cluster = self._cluster
        joining = cluster.admit()
        cluster.start([joining])
        cluster.wait_ready([joining])
        armed = self._armed(case.role, joining)
        for node in armed:
            self._file(node, f"befall.{case.point}").touch()
        watch = Watch(cluster, f"add node {joining}")
        with ThreadPoolExecutor(1) as pool:
            begun = pool.submit(watch.begin)
            node = self._await_point(watch, begun, armed, case.point)
            if node is not None:
                self._let_befall(case, watch, node, joining)
            error = begun.exception()
            # The node that ran the statement may have failed before it replied.
            if error is not None and (node is None or not isinstance(error, saros.Error)):
                raise error
        watch.wait()
        watch.grown()
        return node

    def shrink(self) -> None:
        """Remove nodes until the cluster has its original size, and check that no superfluous data is left.

        Raises NodeFailed, saros.Error.
        """
        while len(self._cluster.nodes) > self._nodes:
            remove(self._cluster, max(self._cluster.nodes))
        limit = time.monotonic() + _LEFT_SECONDS_MAX
        while left := self._left_over():
            if time.monotonic() > limit:
                raise NodeFailed(f"left over after {_LEFT_SECONDS_MAX:.0f} s: {', '.join(left)}")
            time.sleep(_RETRY_SECONDS)

    # ------------------------------------------------------------------ the moment

    def _armed(self, role: str, joining: int) -> Sequence[int]:
        """Return the nodes of a role."""
        if role == JOINER:
            return [joining]
        leader = self._cluster.leaders().get(0)
        before = [node for node in self._cluster.nodes if node != joining]
        return [node for node in before if (node == leader) == (role == LEADER)] or before

    def _await_point(self, watch: Watch, begun: Future[None], armed: Sequence[int], point: str) -> int | None:
        """Return the first node that stops at the point; let all other nodes that stop there continue.

        Returns None if the change ended before a node reached the point.
        """
        limit = time.monotonic() + CHANGE_SECONDS_MAX
        until = limit
        while not (there := self._stopped(armed, point)) and time.monotonic() < until:
            if until == limit and begun.done() and watch.poll() is None:
                until = time.monotonic() + _LATE_SECONDS
            time.sleep(_POLL_SECONDS)
        if until == limit and not there:
            raise NodeFailed(f"nobody gets to {point!r}, and the change does not end")
        for node in armed:
            self._file(node, f"befall.{point}").unlink(missing_ok=True)
        there = there or self._stopped(armed, point)
        for node in self._stopped(armed, point):
            self._cluster.await_stopped(node)  # the node announces that it stops just before it does
            self._file(node, f"befallen.{point}").unlink()
            if node != there[0]:
                self._cluster.resume(node)
        return there[0] if there else None

    def _stopped(self, armed: Sequence[int], point: str) -> list[int]:
        return [node for node in armed if self._file(node, f"befallen.{point}").exists()]

    def _file(self, node: int, name: str) -> Path:
        return self._cluster.folder_of(node) / name

    # ------------------------------------------------------------------ the fault

    def _let_befall(self, case: Case, watch: Watch, node: int, joining: int) -> None:
        cluster = self._cluster
        match case.kind:
            case "kill":
                cluster.kill(node)
                time.sleep(AWAY_SECONDS)
                cluster.start([node])
            case "lose":
                cluster.kill(node)
                self._do_without(watch, node, joining)
            case "pause":
                time.sleep(PAUSE_SECONDS)
                cluster.resume(node)
            case "cut" | "full":
                self._file(node, case.kind).touch()
                cluster.resume(node)
                time.sleep(PAUSE_SECONDS)
                self._file(node, case.kind).unlink()
        cluster.wait_ready()

    def _do_without(self, watch: Watch, lost: int, joining: int) -> None:
        """End the change without a permanently lost node, then remove the node from the cluster."""
        cluster = self._cluster
        while watch.poll() is not None and not self._is_given_up(lost):
            time.sleep(_RETRY_SECONDS)
        watch.wait()
        if lost == joining:
            self._tell(f"remove node {lost}", f"dismiss node {lost}")
        else:
            new = cluster.admit()
            cluster.start([new])
            cluster.wait_ready([new])
            self._tell(f"replace node {lost} with {new}")
        watch.wait()
        cluster.forget(lost)

    def _is_given_up(self, node: int) -> bool:
        """Return whether the cluster completes or aborts the change without the node."""
        try:
            self._tell(f"give up node {node}", "abort change", seconds=0)
        except saros.Error:
            return False
        return True

    def _tell(self, *statements: str, seconds: float = CHANGE_SECONDS_MAX) -> None:
        """Run the first statement that the cluster accepts. Raises saros.Error if it accepts none of them."""
        limit = time.monotonic() + seconds
        while True:
            for statement in statements:
                try:
                    begin(self._cluster, statement)
                except saros.Error as error:
                    last = error
                else:
                    return
            if time.monotonic() >= limit:
                raise last
            time.sleep(_RETRY_SECONDS)

    # ------------------------------------------------------------------ afterwards

    def _left_over(self) -> list[str]:
        """Return the groups, files and snapshots that should not be on their nodes."""
        found = []
        for node in self._cluster.nodes:
            mine = {str(row["RegionId"]) for row in self._cluster.regions(node) if row["DataNodeId"] == node}
            groups = set(self._names(node, "groups"))
            found += [f"group {name} of node {node}" for name in sorted(groups - mine)]
            found += [f"{place}/{name} of node {node}" for place in _PASSING for name in self._names(node, place)]
        return found

    def _names(self, node: int, place: str) -> list[str]:
        folder = self._file(node, place)
        return os.listdir(folder) if folder.is_dir() else []

"""A node's view of its cluster: the state of its own replicas, and the latest reports of the other nodes.

Only `refresh`, `answers` and `find_fast_nodes` wait for other nodes. `refresh` is a background task. Each time, it asks
all nodes that share a group with this node, and a few of the other nodes, in turn.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from saros_cluster.multiraft.host import GroupHost
from saros_cluster.multiraft.log_latency import LogHealth
from saros_cluster.multiraft.peers import CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.node.groups import counted
from saros_cluster.node.receive_throttle import ReceiveCounters, ReceiveThrottle
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.round_robin import RoundRobin
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META, NodeState
from saros_cluster.topology.transitions import NO_SUCH_NODE
from saros_cluster.transport.handshake import Identity
from saros_engine.base.cluster_info import (
    ChangeRow,
    Endpoint,
    NodeRow,
    NodeStatus,
    RegionRow,
    RegionType,
    ReplicaRole,
    answering,
)
from saros_engine.base.system_mode import SystemMode
from saros_server.process.version import RELEASE
from saros_storage.base.clock import Clock
from saros_storage.base.errors import UserMistake

logger = logging.getLogger(__name__)

_STATUS = "status"
_ASK_SECONDS = 1.0
#: The number of nodes that one `refresh` asks although they share no group with this node. If there are n such nodes,
#: each of them is asked every n / 16 seconds.
_OTHERS_ASKED = 16
#: The time for which `answers` repeats its attempts, and the pause between two attempts.
_ANSWER_NS, _PAUSE_SECONDS = 5_000_000_000, 0.1
#: If the clocks of two nodes differ by more than this, it is reported as a problem, since now() and TTL depend on the
#: clocks.
_CLOCKS_NS = 2_000_000_000
_REMOVED = "this node was removed from the cluster: stop it, and delete its folder"


class _Replica(msgspec.Struct, frozen=True):
    """One replica, as its node reports it."""

    leads: bool
    leader: int | None
    term: int
    commit: int
    applied: int
    partitions: int
    #: The databases that have partitions in the replica.
    databases: tuple[str, ...]


class _NodeReport(msgspec.Struct, frozen=True):
    """A node's report about itself."""

    version: str
    replicas: Mapping[GroupId, _Replica]
    came: ReceiveCounters
    read_only: bool
    log: LogHealth
    #: The time that the node took to answer, and the time by which its clock is ahead of this node's clock.
    answer_ns: int = 0
    ahead_ns: int = 0


class LocalGroup(msgspec.Struct, frozen=True):
    """A group that this node is a member of.

    `term` and `applied` are counted from the beginning of the group (see `counted`).
    """

    leads: bool
    has_leader: bool
    term: int
    applied: int
    lag: int


_UNASKED = _NodeReport("", {}, ReceiveCounters(), read_only=False, log=LogHealth())


class ClusterStatus:
    """An implementation of the engine's `ClusterInfo` from the reports of all nodes."""

    def __init__(
        self,
        identity: Identity,
        routes: Routes,
        host: GroupHost,
        replicas: Replicas,
        peers: Peers,
        schema: ClusterSchema,
        inflow: ReceiveThrottle,
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._node = identity.node
        self._routes = routes
        self._host = host
        self._replicas = replicas
        self._peers = peers
        self._schema = schema
        self._inflow = inflow
        self._clock = clock
        #: The last report of each node, or None if the node did not answer.
        self._reports: dict[NodeId, _NodeReport | None] = {}
        #: The number of committed entries of each of this node's replicas at the last `refresh`, for comparison with
        #: the reports.
        self._committed: Mapping[GroupId, int] = {}
        self._turn: RoundRobin[NodeId] = RoundRobin(_OTHERS_ASKED)
        self._mode = SystemMode()

    def set_mode(self, mode: SystemMode) -> None:
        """Set the mode that is reported to other nodes.

        Other nodes see no mode until this is called. The cluster must be open.
        """
        self._mode = mode

    # ------------------------------------------------------------------ requests and reports

    def refresh(self) -> None:
        """Ask other nodes for their reports."""
        statuses = self._host.statuses().items()
        self._committed = {group: counted(status.term, status.commit) for group, status in statuses}
        for node in self._next_asked():
            self._reports[node] = self._ask(node)

    def _next_asked(self) -> list[NodeId]:
        routing = self._routes.now
        groups = [routing.members(group) for group in (META, *routing.groups_of(self._node))]
        near = {node for members in groups if self._node in members for node in members} & {*routing.nodes}
        far = [node for node in routing.nodes if node not in near and node != self._node]
        return sorted({*near, *self._turn.pick(far)} - {self._node})

    def answers(self, node: NodeId) -> bool:
        """Return whether a node answers.

        Retry for some seconds, since a node that has just started may not be connected yet.
        """
        limit_ns = self._clock.monotonic_ns() + _ANSWER_NS
        while self._ask(node) is None:
            if self._clock.monotonic_ns() > limit_ns:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def _ask(self, node: NodeId) -> _NodeReport | None:
        asked_ns, begun_ns = self._clock.now_ns(), self._clock.monotonic_ns()
        try:
            words = json.loads(self._peers.call(node, _STATUS, b"", _ASK_SECONDS))
        except (Unreachable, RemoteError) as error:
            logger.debug("a node does not report its status", extra={"node": node, "why": str(error)})
            return None
        replicas = {GroupId(int(g)): _replica_of(found) for g, found in words["groups"].items()}
        ahead_ns = _clock_skew(
            words.get("clock_ns", asked_ns), asked_ns, self._clock.now_ns()
        )  # nodes of older versions do not report their clock
        read_only, answer_ns = bool(words.get("read_only")), self._clock.monotonic_ns() - begun_ns
        log = LogHealth(*words.get("log", ()))
        return _NodeReport(
            words["version"], replicas, ReceiveCounters(*words["came"]), read_only, log, answer_ns, ahead_ns
        )

    def call_handlers(self) -> Mapping[str, CallHandler]:
        """Return the handlers of other nodes' calls, by name."""
        return {_STATUS: lambda _, __: self._serve_status()}

    def _serve_status(self) -> bytes:
        groups = {}
        for group, found in self._local_replicas().items():
            groups[group] = astuple(found)
        came = astuple(self._inflow.received())
        words = {"version": RELEASE, "groups": groups, "came": came, "read_only": self._mode.read_only}
        words |= {"log": astuple(self._host.log_health), "clock_ns": self._clock.now_ns()}
        return json.dumps(words).encode()

    def _local_replicas(self) -> dict[GroupId, _Replica]:
        found = {}
        for group, status in self._host.statuses().items():
            machine = self._replicas.machines.get(group)
            partitions = [] if machine is None else machine.region.partition_counts()
            count, databases = sum(n for _, n in partitions), tuple(database for database, _ in partitions)
            found[group] = _Replica(
                status.leads, status.leader, status.term, status.commit, status.applied, count, databases
            )
        return found

    def _all(self) -> dict[NodeId, _NodeReport | None]:
        own = _NodeReport(
            RELEASE, self._local_replicas(), self._inflow.received(), self._mode.read_only, self._host.log_health
        )
        return {**self._reports, self._node: own}

    def current_members(self, group: GroupId) -> list[NodeId]:
        """Return the other members of a group that are up to date according to their last report.

        They are in ring order, except that members with a slow log come last.
        """
        found = []
        for node in self._routes.now.members(group):
            told = self._reports.get(node)
            replica = None if told is None else told.replicas.get(group)
            if replica is not None and replica.applied >= replica.commit:
                found.append(node)
        return sorted(found, key=self.is_slow)

    def is_slow(self, node: NodeId) -> bool:
        """Return whether another node's last report says that its log is slow."""
        return (self._reports.get(node) or _UNASKED).log.slow

    def find_fast_nodes(self) -> set[NodeId]:
        """Ask the other nodes, and return each node that answers and has a log that is not slow."""
        asked = {node: self._ask(node) for node in self._routes.now.nodes if node != self._node}
        self._reports |= asked
        return {node for node, told in asked.items() if told is not None and not told.log.slow}

    def is_down(self, node: NodeId) -> bool:
        """Return whether a node did not answer the last request."""
        return self._reports.get(node, _UNASKED) is None

    # ------------------------------------------------------------------ for operators

    def blocked_by(self) -> str | None:
        """Return the reason why this node cannot accept any write, or None if it can write to at least one group."""
        if self._routes.is_removed:
            return _REMOVED
        if self._node in self._routes.now.topology.in_state(NodeState.WAITING):
            return f"this node has not joined the cluster: run ADD NODE {self._node}"
        if self._host.leader_of(META) is None:
            voters = ", ".join(map(str, self._routes.now.members(META)))
            return (
                "no leader of the meta group is known: this node is cut off, or at least half of the voters"
                f" ({voters}) are down"
            )
        return None

    def problems(self) -> list[str]:
        """Return descriptions of current problems for operators."""
        blocked = self.blocked_by()
        found = [] if blocked is None else [blocked]
        if not self.is_in or self._routes.is_removed:
            return found
        told, topology = self._all(), self._routes.now.topology
        led = {group for found in told.values() if found for group, replica in found.replicas.items() if replica.leads}
        found += [f"group {group} has no leader" for group in self._routes.now.groups if group not in led]
        for node in self._routes.now.nodes:
            answer = told.get(node, _UNASKED)
            if answer is None:
                found.append(f"node {node} ({topology.nodes[node].peer}) does not answer")
            elif abs(answer.ahead_ns) > _CLOCKS_NS:
                side = "ahead of" if answer.ahead_ns > 0 else "behind"
                found.append(f"the clock of node {node} is {abs(answer.ahead_ns) / 1e9:.0f} s {side} this one's")
            if answer is not None and answer.log.slow:
                found.append(
                    f"node {node} writes its log slowly ({answer.log.text}), so other nodes lead its groups: "
                    "check its disk"
                )
        return found

    def log_health(self) -> Mapping[NodeId, LogHealth]:
        """Return the log latency of this node, and of each node that answered the last request."""
        return {node: told.log for node, told in self._all().items() if told is not None}

    def answer_seconds(self) -> Mapping[NodeId, float]:
        """Return how long each other node took to answer the last request; nodes that did not answer are left out."""
        told = {node: found for node, found in self._reports.items() if node in self._routes.now.nodes}
        return {node: found.answer_ns / 1e9 for node, found in told.items() if found is not None}

    def unreachable_count(self) -> int:
        """Return the number of other nodes that did not answer the last request."""
        return sum(self.is_down(node) for node in self._routes.now.nodes)

    @property
    def changing(self) -> bool:
        """True if a change of the cluster is in progress."""
        return self._routes.now.topology.change is not None

    def local_groups(self) -> Mapping[GroupId, LocalGroup]:
        """Return the groups that this node is a member of."""
        committed = self._commits()
        return {
            group: LocalGroup(
                found.leads,
                found.leader is not None,
                counted(found.term, found.term),
                counted(found.term, found.applied),
                _lag(found, committed.get(group, 0)),
            )
            for group, found in self._local_replicas().items()
        }

    def _commits(self) -> Mapping[GroupId, int]:
        """Return the number of committed entries of each group: the highest number that any of its replicas reports.

        If a replica lacks entries, it does not know that they are committed. This node's own number dates from the last
        `refresh`, so entries committed since then do not count as lag of the other replicas.
        """
        known = dict(self._committed)
        for told in self._reports.values():
            for group, replica in () if told is None else told.replicas.items():
                known[group] = max(known.get(group, 0), counted(replica.term, replica.commit))
        return known

    # ------------------------------------------------------------------ ClusterInfo

    @property
    def is_in(self) -> bool:
        """True if this node is a member of the cluster, as far as it knows. While a node joins, it is not a member."""
        return self._node in self._routes.now.nodes

    @property
    def node(self) -> NodeId:
        """See `ClusterInfo.node`."""
        return self._node

    def nodes(self) -> Sequence[NodeRow]:
        """See `ClusterInfo.nodes`."""
        told = self._all()
        rows = []
        for node in self._routes.now.nodes:
            address, found = self._routes.now.topology.nodes[node], told.get(node)
            status = NodeStatus.UNKNOWN if found is None else answering(read_only=found.read_only)
            known = None if found is None else found.version
            rows.append(NodeRow(node, status, _endpoint(address.peer), _endpoint(address.client), known, address.rack))
        topology = self._routes.now.topology
        for node in topology.in_state(NodeState.WAITING):
            address = topology.nodes[node]
            peer, client = _endpoint(address.peer), _endpoint(address.client)
            rows.append(NodeRow(node, NodeStatus.JOINING, peer, client, None, address.rack))
        return sorted(rows, key=lambda row: row.node)

    def regions(self) -> Sequence[RegionRow]:
        """See `ClusterInfo.regions`."""
        told, committed = self._all(), self._commits()
        rows = []
        for group in (META, *self._routes.now.groups):
            shared = self._databases(group, told.values()), committed.get(group, 0)
            rows += [self._row(group, node, told.get(node), *shared) for node in self._routes.now.members(group)]
        return rows

    def _databases(self, group: GroupId, told: Iterable[_NodeReport | None]) -> tuple[str, ...]:
        """Return the databases whose schema the group has, or of which any of its replicas has data."""
        if group == META:
            return ()
        found = {d for d in self._schema.tree.databases() if self._routes.now.schema_group(d) == group}
        for node in told:
            if node is not None and group in node.replicas:
                found.update(node.replicas[group].databases)
        return tuple(sorted(found))

    def _row(
        self, group: GroupId, node: NodeId, told: _NodeReport | None, databases: tuple[str, ...], committed: int
    ) -> RegionRow:
        found = None if told is None else told.replicas.get(group)
        role = ReplicaRole.UNKNOWN
        if found is not None:
            role = ReplicaRole.LEADER if found.leads else ReplicaRole.FOLLOWER
        return RegionRow(
            region=group,
            type=RegionType.CONFIG if group == META else RegionType.DATA,
            node=node,
            status=NodeStatus.UNKNOWN if told is None or found is None else answering(read_only=told.read_only),
            role=role,
            databases=databases,
            slots=0 if group == META else len(self._routes.now.table.slots_of(NodeId(group))),
            partitions=None if found is None else found.partitions,
            term=None if found is None else counted(found.term, found.term),
            applied=None if found is None else counted(found.term, found.applied),
            lag=None if found is None else _lag(found, committed),
        )

    @property
    def replicas(self) -> int:
        """See `ClusterInfo.replicas`."""
        return self._routes.now.table.replicas

    def variables(self) -> Sequence[tuple[str, str]]:
        """See `ClusterInfo.variables`."""
        return (
            ("ClusterId", self._identity.cluster),
            ("NodeId", str(self._node)),
            ("SlotNum", str(len(self._routes.now.table.owners))),
        )

    def change(self) -> ChangeRow | None:
        """See `ClusterInfo.change`."""
        if self._routes.is_removed:
            raise UserMistake(f"{_REMOVED}; ask another one", code=NO_SUCH_NODE)
        change = self._routes.now.topology.change
        if change is None:
            return None
        came = [told.came for told in self._all().values() if told is not None and told.came.change == change.id]
        return ChangeRow(
            change=change.id,
            stage=change.stage.value,
            joining=change.joining,
            leaving=change.leaving,
            moves=len(change.moves),
            opened=sum(move.opened for move in change.moves),
            arrived=sum(move.arrived for move in change.moves),
            dropped=sum(move.dropped for move in change.moves),
            slots=sum(len(move.slots) for move in change.moves),
            arrived_slots=sum(len(move.slots) for move in change.moves if move.arrived),
            expected_bytes=sum(each.expected_bytes for each in came),
            came_bytes=sum(each.bytes for each in came),
            bytes_per_second=int(sum(each.bytes / each.seconds for each in came if each.seconds)),
            regroups=len(change.regroups),
            regrouped=sum(regroup.done for regroup in change.regroups.values()),
        )

    def client_addresses(self) -> list[str]:
        """Return the host:port of each node for clients, this node's first."""
        routing = self._routes.now
        nodes = sorted(routing.nodes, key=lambda node: (node != self._node, node))
        return [routing.topology.nodes[node].client for node in nodes]

    def client_address_elsewhere(self, node: NodeId | None) -> str:
        """Return the host:port at which clients reach another node; empty for this node and for an unknown one."""
        found = None if node in (None, self._node) else self._routes.now.topology.nodes.get(node)
        return "" if found is None else found.client


def _replica_of(words: Sequence[Any]) -> _Replica:
    leads, leader, term, commit, applied, partitions, databases = words
    return _Replica(leads, leader, term, commit, applied, partitions, tuple(databases))


def _lag(found: _Replica, committed: int) -> int:
    """Return the number of committed entries that a replica has not applied."""
    return max(committed, counted(found.term, found.commit)) - counted(found.term, found.applied)


def _clock_skew(told_ns: int, asked_ns: int, answered_ns: int) -> int:
    """Return a lower bound of another node's clock minus this node's clock, in nanoseconds.

    The other node read `told_ns` from its clock between `asked_ns` and `answered_ns` on this node's clock. The result
    is 0 if `told_ns` lies in this range.
    """
    return max(told_ns - answered_ns, 0) + min(told_ns - asked_ns, 0)


def _endpoint(address: str) -> Endpoint:
    host, _, port = address.rpartition(":")
    return Endpoint(host, int(port))

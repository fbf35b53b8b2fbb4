"""The log index that a strong read must see, for local and remote groups (Raft's ReadIndex).

    local group     host.read: the leader confirms an index, and this replica applies up to it
    remote group    "catch up" at a member, which does the same and answers (index, schema changes)

After a node has caught up with a group, its tree contains the group's schema, and a view at or after the returned index
shows everything that was acknowledged before. If a member does not answer, the next one is asked. The next request goes
first to the member that answered last.

Weak reads do not ask for an index, but they need the schema of remote groups: otherwise, unknown series would look
empty. Any member can answer a request for the schema ("schema"), as of the last entry that it has applied. The schema
is refreshed in the background, so that new series become visible. It is also refreshed when a session has seen a newer
schema on another node.

Thread-safe.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

import msgspec

from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.multiraft.host import GroupHost, NotHere
from saros_cluster.multiraft.peers import BadRequest, CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.availability import Availability
from saros_cluster.routing.no_leader import DataMoving, NoLeader, NoReplica, SchemaUnknown, step_deadline_ns
from saros_cluster.routing.proposer import CROWDED
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META
from saros_storage.base.clock import Clock
from saros_storage.base.paths import join_nodes, parse_pattern, split_path
from saros_storage.scan.read_point import ReadPoint, ReadScope, schema_of, split
from saros_storage.scan.reading import TimeRange
from saros_storage.schema import SchemaTree

CATCH_UP, SCHEMA = "catch up", "schema"
#: The time to wait for one member's answer, after which the next member is asked.
_ATTEMPT_SECONDS = 3.0
#: The timeout of a request for a member's schema, which the member answers without asking its leader.
_TOLD_SECONDS = 1.0
#: The pause before a group that has no leader is asked again. It is much shorter than an election.
_PAUSE_SECONDS = 0.02
#: A group with a leader confirms an index within this time, unless the nodes are busy.
_SHORT_SECONDS = 0.5
#: The longest time that a strong read waits.
STRONG_SECONDS = 10.0
#: The longest time that a `mid` read waits to become current.
MID_SECONDS = 0.5
#: The longest time that a read waits until a replica has an index that the session saw on another node. A healthy
#: replica has that index at the next heartbeat.
SHOWN_SECONDS = 0.3
#: The longest time that a read waits after a start for the first schema of remote groups.
KNOW_SECONDS = 5.0
#: Interval at which a waiting replica checks how far it has applied its log.
_POLL_SECONDS = 0.002
_NOT_IN_TIME = "it has not confirmed a read in time"
#: Groups with a replica on this node, and the pending answers of their leaders.
Reads = list[tuple[GroupId, Future[int | None]]]


class Extent(msgspec.Struct, frozen=True):
    """The databases that a scope names or reads, according to a version of the schema."""

    scope: ReadScope
    version: int
    #: Sorted.
    databases: Sequence[str]
    #: The ranges of time to read, each with its database, or None if all points are read.
    times: Collection[tuple[str, TimeRange]] | None


class ReadBarrier:
    """Finds the index that a read must see in each group, and waits until this node's schema includes it."""

    def __init__(
        self,
        host: GroupHost,
        peers: Peers,
        clock: Clock,
        routes: Routes,
        replicas: Replicas,
        schema: ClusterSchema,
        pool: ThreadPoolExecutor,
        is_down: Callable[[NodeId], bool],
        node: NodeId,
        availability: Availability,
    ) -> None:
        self._availability = availability
        self._node = node
        self._host = host
        self._peers = peers
        self._clock = clock
        self._routes = routes
        self._replicas = replicas
        self._schema = schema
        self._pool = pool
        self._is_down = is_down
        #: For each group, the member that answered last.
        self._answering: dict[GroupId, NodeId] = {}
        #: For each remote group, the last entry that changed the group's schema, as far as this node knows.
        self._changed: dict[GroupId, int] = {}
        self._learning = threading.Lock()
        self._counting = threading.Lock()
        self._confirmations: Counter[GroupId] = Counter()

    @property
    def confirmations(self) -> Mapping[GroupId, int]:
        """For each group, the number of times that it was asked to confirm an index."""
        with self._counting:
            return dict(self._confirmations)

    def is_local(self, group: GroupId) -> bool:
        """Return whether this node has a replica of the group and is a member of the group.

        A node that is still joining the group is not a member.
        """
        is_member = self._node in self._routes.now.members(group)
        return group == META or (is_member and group in self._replicas.machines)

    def holders(self, group: GroupId) -> list[NodeId]:
        """Return the members of a group. The member that answered last comes first, and silent members come last."""
        answering = self._answering.get(group)
        return sorted(self._routes.now.members(group), key=lambda node: (self._is_down(node), node != answering))

    def catch_up(self, groups: Iterable[GroupId], seconds: float) -> dict[int, int]:
        """Return, for each group, the index of the last entry that a view must contain. Raises NoLeader."""
        found, failures = self._catch_up(list(groups), self._clock.monotonic_ns() + int(seconds * 1e9))
        for error in failures.values():
            raise error
        return found

    def _catch_up(self, groups: Sequence[GroupId], deadline_ns: int) -> tuple[dict[int, int], dict[GroupId, NoLeader]]:
        """Return the indexes of groups, and the errors of groups that did not confirm one.

        All groups are asked at once. A request that waits longer for a leader takes one of the node's places for
        waiting requests (`routing.availability`).
        """
        lost = [group for group in groups if self._availability.needs_place(group)]
        short_ns = min(deadline_ns, self._clock.monotonic_ns() + int(_SHORT_SECONDS * 1e9))
        found, failures = self._ask_all([group for group in groups if group not in lost], short_ns)
        waiting = [*lost, *failures] if self._left(deadline_ns) > 0 else lost
        if waiting and self._availability.take_place():
            try:
                more, failures = self._ask_all(waiting, deadline_ns)
            finally:
                self._availability.leave_place()
            found |= more
        elif waiting:
            failures = {group: self._no_leader(group, CROWDED) for group in waiting}
        for group in found:
            self._availability.note_success(GroupId(group))
        return found, failures

    def _ask_all(self, groups: Sequence[GroupId], deadline_ns: int) -> tuple[dict[int, int], dict[GroupId, NoLeader]]:
        with self._counting:
            self._confirmations.update(groups)
        left_s = self._left(deadline_ns)
        shorter_s = left_s - min((self._availability.patience_s(group, left_s) for group in groups), default=left_s)
        deadline_ns -= int(shorter_s * 1e9)
        remote = [group for group in groups if not self.is_local(group)]
        reads = [(group, self._host.read(group)) for group in groups if group not in remote]
        asked = [(group, self._pool.submit(self._ask, group, deadline_ns).result) for group in remote[:-1]]
        asked = [(group, partial(self._ask, group, deadline_ns)) for group in remote[-1:]] + asked
        found: dict[int, int] = {}
        failures: dict[GroupId, NoLeader] = {}
        for group, answer in asked:
            try:
                found[group] = answer()
            except NoLeader as error:
                failures[group] = error
        return found | self._wait_local(reads, deadline_ns, failures), failures

    def catch_up_with(self, point: ReadPoint, extent: Extent, seconds: float) -> bool:
        """Ask each group that a read needs for its index, unless `point` has it already. Return whether any was asked.

        While the groups answer, slots may move and databases may be created, so further groups may be needed. These are
        asked, too. Raises NoLeader.
        """
        deadline_ns = self.deadline_ns(point, seconds)
        asked = False
        while True:
            routing, extent = self._routes.now, self.renewed(extent)
            missing = [group for group in self._groups_of(extent, routing) if group not in point.applied]
            if missing:
                self._confirm(point, missing, deadline_ns, extent)
            elif orphans := self._orphans(extent):  # their new groups answered before announcing the series
                self._confirm(point, sorted({META, *map(routing.schema_group, orphans)}), deadline_ns, extent)
                if self._routes.now is routing:
                    self._schema.forget(orphans)
            else:
                return asked
            asked = True

    def confirm(self, point: ReadPoint, extent: Extent, groups: Collection[GroupId]) -> None:
        """If the read must be current, ask for the index of each group that has none in `point` yet.

        Raises NoLeader.
        """
        missing = [group for group in groups if group not in point.applied] if point.current else []
        if missing:
            seconds = STRONG_SECONDS if point.strong else MID_SECONDS
            self._confirm(point, missing, self.deadline_ns(point, seconds), extent)

    def _confirm(self, point: ReadPoint, groups: Sequence[GroupId], deadline_ns: int, extent: Extent) -> None:
        """Ask groups for their index. Raises NoLeader.

        If the read is strong and may be partial, data groups without a leader are left out instead.
        """
        found, failures = self._catch_up(groups, deadline_ns)
        errors = {group: error.named(self._concerned(group, extent)) for group, error in failures.items()}
        if errors and not (point.partial and point.strong and META not in errors):
            decisive = META if point.partial and META in errors else max(errors)  # prefer a data group
            raise errors[decisive] from failures[decisive]
        point.applied = {**point.applied, **dict.fromkeys(errors, 0), **found}
        point.leave_out(errors.items())

    def _concerned(self, group: GroupId, extent: Extent) -> list[str]:
        """Return the databases of a read that depend on a group: it stores their schema, or may have their points.

        All databases depend on the meta group.
        """
        routing, partitions = self._routes.now, self._schema.partitions
        kept = extent.databases if group == META else routing.schemas_of(group, extent.databases)
        always = TimeRange()
        return [p for p in extent.databases if p in kept or group in routing.groups_for(p, always, partitions.get(p))]

    def learn_for(self, point: ReadPoint, extent: Extent) -> bool:
        """Fetch the schema of remote groups whose schema is unknown here, for a read that need not be current.

        Return whether the read needs groups that were not yet in `point`. The point is marked as stale unless this node
        shows all entries of these groups that the session has seen before. Raises SchemaUnknown.
        """
        routing = self._routes.now
        new = [group for group in self._groups_of(extent, routing) if group not in point.applied]
        if not new:
            return False
        deadline_ns = self.deadline_ns(point, KNOW_SECONDS)
        schema_groups = set(map(routing.schema_group, extent.databases))
        self._know_schema(point, new if extent.times is None else schema_groups, deadline_ns)
        wanted = {g: index for group in new for g in (group, schema_of(group)) if (index := point.wanted.get(g))}
        if not self.wait_session_visible(wanted, min(SHOWN_SECONDS, self._left(deadline_ns))):
            point.stale = True
        point.applied = {**dict.fromkeys(new, 0), **point.applied}
        return True

    def _know_schema(self, point: ReadPoint, groups: Iterable[GroupId], deadline_ns: int) -> None:
        """Fetch the schema of each group whose schema is unknown here.

        A partial read leaves out groups that do not answer.
        """
        errors = self._learn_all(self._unknown(groups), deadline_ns)
        if point.partial:
            point.leave_out(errors.items())
        else:
            _raise_first(errors)

    def deadline_ns(self, point: ReadPoint, seconds: float) -> int:
        """Return the time at which a wait of at most `seconds` ends.

        A partial read reserves half of its time for reading.
        """
        now_ns, end_ns = self._clock.monotonic_ns(), point.deadline_ns
        if end_ns is not None and point.partial:
            end_ns = (now_ns + end_ns) // 2
        return step_deadline_ns(now_ns, seconds, end_ns)

    def resolve(self, scope: ReadScope) -> Extent:
        """Return the databases of a scope, according to the schema known here."""
        tree = self._schema.tree
        version = tree.version  # read first: later changes may be missing from the result
        if scope.sources is None:
            return Extent(scope, version, sorted(tree.databases()), None)
        times = _times_of(scope.sources, tree)
        matching = (database for text in scope.patterns for database in databases_matching(text, tree))
        return Extent(scope, version, sorted({*matching, *(database for database, _ in times)}), times)

    def renewed(self, extent: Extent) -> Extent:
        """Return the extent of the read, which is computed again if the schema has changed."""
        return extent if extent.version == self._schema.tree.version else self.resolve(extent.scope)

    def _groups_of(self, extent: Extent, routing: Routing) -> list[GroupId]:
        """Return the groups whose schema or points a read needs, according to the schema and routing known here.

        The meta group is always among them: it has the databases, their partitions and the partition table. At least
        one data group is among them, since every data group has the catalogue and the TTL rules.
        """
        found = {*map(routing.schema_group, extent.databases), *self.groups_read(extent, routing)}
        return [META, *(sorted(found) or self._anyone(routing))]

    def groups_read(self, extent: Extent, routing: Routing) -> Sequence[GroupId]:
        """Return the groups that may have points of a read."""
        if extent.times is None:
            return routing.groups
        known = self._schema.partitions
        return sorted({g for name, time in extent.times for g in routing.groups_for(name, time, known.get(name))})

    def _anyone(self, routing: Routing) -> Sequence[GroupId]:
        """Return one data group, preferably one that has a leader and a replica on this node."""
        leaderless = {group: self._host.leader_of(group) is None for group in routing.groups}
        return sorted(routing.groups, key=lambda group: (leaderless[group], not self.is_local(group)))[:1]

    def _orphans(self, extent: Extent) -> frozenset[str]:
        return self._schema.orphans.intersection(extent.databases)

    def _is_gone(self, group: GroupId) -> bool:
        """Return whether the group has ended. The data of such a group has moved to other groups."""
        return not self._routes.now.members(group)

    def _wait_local(self, reads: Reads, deadline_ns: int, failures: dict[GroupId, NoLeader]) -> dict[int, int]:
        """Return the indexes of local groups. Add the errors of groups that did not confirm an index to `failures`."""
        found: dict[int, int] = {}
        while reads:
            waiting: list[GroupId] = []
            for group, read in reads:
                try:
                    index = read.result(max(self._left(deadline_ns), 0.001))
                except FutureTimeoutError:
                    failures[group] = self._no_leader(group, _NOT_IN_TIME)
                except NotHere as error:
                    self._left_meanwhile(group, error, deadline_ns, found, failures)
                else:
                    if index is not None:
                        found[group] = index
                    elif self._left(deadline_ns) > 0:
                        waiting.append(group)
                    else:
                        failures[group] = self._no_leader(group, _NOT_IN_TIME)
            if waiting:
                time.sleep(_PAUSE_SECONDS)
            reads = [(group, self._host.read(group)) for group in waiting]
        return found

    def _left_meanwhile(
        self,
        group: GroupId,
        error: NotHere,
        deadline_ns: int,
        found: dict[int, int],
        failures: dict[GroupId, NoLeader],
    ) -> None:
        """Ask the other members for the group's read index, since this node has left the group.

        If the group has ended, there is nothing to ask.
        """
        try:
            if group in self._routes.now.groups and not self.is_local(group):
                found[group] = self._ask(group, deadline_ns)
            elif not self._is_gone(group):
                raise self._no_leader(group, str(error)) from error
        except NoLeader as failure:
            failures[group] = failure

    def read_error(self, group: GroupId, error: Exception, extent: Extent) -> NoReplica | DataMoving:
        """Return the error for a read that none of a group's remaining holders can answer."""
        databases = self._concerned(group, extent)
        if getattr(error, "code", None) == MOVED:
            return DataMoving(databases)
        members = self._routes.now.members(group)
        return NoReplica(group, str(error), members, self._silent(members), databases)

    def _silent(self, members: Sequence[NodeId]) -> list[NodeId]:
        return [node for node in members if node != self._node and self._is_down(node)]

    def _no_leader(self, group: GroupId, why: str) -> NoLeader:
        routing = self._routes.now
        members = routing.members(group)
        self._availability.note_failure(group)
        silent = self._silent(members)
        return NoLeader(group, why, members, silent, self._told_by(group), self._availability.since(group))

    def _told_by(self, group: GroupId) -> list[str]:
        """Return the databases whose schema a group stores."""
        return self._routes.now.schemas_of(group, self._schema.tree.databases())

    def _left(self, deadline_ns: int) -> float:
        return (deadline_ns - self._clock.monotonic_ns()) / 1e9

    def pause(self, seconds: float) -> None:
        """Sleep for a moment, so that other nodes can make progress."""
        time.sleep(seconds)

    def wait_session_visible(self, wanted: Mapping[int, int], seconds: float) -> bool:
        """Wait at most `seconds` until groups show everything that a session has seen.

        Return whether the groups' schema shows everything. Skip groups that have ended. The data of remote groups is
        also skipped: a view asks the holders for it.
        """
        deadline_ns = self._clock.monotonic_ns() + int(seconds * 1e9)
        there = (META, *self._routes.now.groups)
        data, schema = ([(GroupId(g), index) for g, index in p.items() if g in there] for p in split(wanted))
        self._learn_all({g: index for g, index in schema if self._is_schema_behind(g, index)}, deadline_ns)
        waiting = [(g, i) for g, i in data + schema if self.is_local(g) and not self._has_applied(g, i)]
        for group in {group for group, _ in waiting}:
            self._host.read(group)  # makes the leader send its commit index at once
        while waiting := [(group, index) for group, index in waiting if not self._has_applied(group, index)]:
            if self._left(deadline_ns) <= 0:
                break
            time.sleep(_POLL_SECONDS)
        return all(self._has_applied(g, i) if self.is_local(g) else not self._is_schema_behind(g, i) for g, i in schema)

    def _is_schema_behind(self, group: GroupId, index: int) -> bool:
        """Return whether a group is remote and its schema is not known up to entry `index`."""
        return not self.is_local(group) and self._schema.applied_index(group) < index

    def has(self, group: GroupId, index: int) -> bool:
        """Return whether this node has a replica of the group that has applied entry `index`."""
        return self.is_local(group) and self._has_applied(group, index)

    def _has_applied(self, group: GroupId, index: int) -> bool:
        status = self._host.status(group)
        return status is not None and status.applied >= index

    # ------------------------------------------------------------------ remote groups

    def _ask(self, group: GroupId, deadline_ns: int) -> int:
        why = _NOT_IN_TIME
        while self._left(deadline_ns) > 0 and not self._is_gone(group):
            for node in self.holders(group):
                left = self._left(deadline_ns)
                if left <= 0:
                    break
                try:
                    index = self._ask_node(CATCH_UP, group, node, min(left, _ATTEMPT_SECONDS))
                    if index is not None:
                        return index
                except (Unreachable, RemoteError) as error:
                    why = str(error)
            time.sleep(_PAUSE_SECONDS)
        if self._is_gone(group):
            return 0
        raise self._no_leader(group, why)

    def _ask_node(self, name: str, group: GroupId, node: NodeId, seconds: float) -> int | None:
        """Return the member's index, or None if the caller must ask again, since the schema has changed meanwhile."""
        known = self._schema.applied_index(group)
        words = {"group": group, "known": known, "seconds": seconds}
        answer = json.loads(self._peers.call(node, name, json.dumps(words).encode(), seconds))
        news = SchemaDelta.from_json(answer["schema"])
        with self._learning:
            if not self._schema.apply_delta(group, news, known):
                return None
            if news.index >= known and (news.whole or news.changes):
                self._changed[group] = news.index
        self._answering[group] = node
        return int(answer["index"])

    # ------------------------------------------------------------------ schema of remote groups, for weak reads

    def _unknown(self, groups: Iterable[GroupId]) -> dict[GroupId, int]:
        """Return the remote groups whose schema is unknown, each with index 0, since any state of it is sufficient."""
        return {group: 0 for group in groups if not self.is_local(group) and not self._schema.applied_index(group)}

    def refresh(self, groups: Iterable[GroupId], seconds: float) -> None:
        """Fetch schema changes of the remote groups among `groups`.

        Raises SchemaUnknown after all of these groups were asked.
        """
        elsewhere = [group for group in groups if not self.is_local(group)]
        deadline_ns = self._clock.monotonic_ns() + int(seconds * 1e9)
        _raise_first(self._learn_all(dict.fromkeys(elsewhere, 0), deadline_ns))

    def schema_shown(self, groups: Iterable[GroupId]) -> dict[int, int]:
        """Return, for each group, the last entry that has changed its schema in this node's tree. Keys: `schema_of`."""
        found = {schema_of(META): self._schema.version}
        for group in groups:
            machine = self._replicas.machines.get(group) if self.is_local(group) else None
            index = self._changed.get(group, 0) if machine is None else machine.region.partitions.schema_index
            found[schema_of(group)] = index
        return found

    def _learn_all(self, wanted: Mapping[GroupId, int], deadline_ns: int) -> dict[GroupId, SchemaUnknown]:
        """Fetch the schema changes of groups, for each group at least up to its entry in `wanted`.

        Return the errors of groups that failed.
        """
        asked = {g: self._pool.submit(self._learn, g, index, deadline_ns) for g, index in wanted.items()}
        errors: dict[GroupId, SchemaUnknown] = {}
        for group, future in asked.items():
            try:
                future.result()
            except SchemaUnknown as error:
                errors[group] = error
        return errors

    def _learn(self, group: GroupId, index: int, deadline_ns: int) -> None:
        why = "the time limit passed before a member was asked"
        for node in self.holders(group):
            left = self._left(deadline_ns)
            if left <= 0:
                break
            try:
                self._ask_node(SCHEMA, group, node, min(left, _TOLD_SECONDS))
            except (Unreachable, RemoteError) as error:
                why = str(error)
            else:  # this thread, or another one in the meantime, has applied a delta
                if not self._is_schema_behind(group, index):
                    return
                why = f"no member that answered has applied entry {index}"
        members = self._routes.now.members(group)
        raise SchemaUnknown(group, why, members, self._silent(members), self._told_by(group))

    # ------------------------------------------------------------------ calls of other nodes

    def handlers(self) -> dict[str, CallHandler]:
        """Return the handlers of `CATCH_UP` and `SCHEMA`."""
        return {
            CATCH_UP: lambda _, request: self._serve_schema(*_read(CATCH_UP, request), current=True),
            SCHEMA: lambda _, request: self._serve_schema(*_read(SCHEMA, request), current=False),
        }

    def _serve_schema(self, group: GroupId, known: int, seconds: float, *, current: bool) -> bytes:
        machine = self._replicas.machines.get(group)
        if machine is None:
            raise NotHere(group, "this node has no replica of it")
        index = 0
        if current:
            deadline_ns = self._clock.monotonic_ns() + int(min(seconds, _ATTEMPT_SECONDS) * 1e9)
            failures: dict[GroupId, NoLeader] = {}
            found = self._wait_local([(group, self._host.read(group))], deadline_ns, failures)
            for error in failures.values():
                raise error
            if group not in found:
                raise NotHere(group, "the group no longer exists")
            index = found[group]
        news = machine.replica.delta_since(known)
        return json.dumps({"index": index, "schema": news.to_json()}).encode()


def _raise_first(errors: Mapping[GroupId, SchemaUnknown]) -> None:
    for error in errors.values():
        raise error


def _times_of(sources: Collection[tuple[str, TimeRange]], tree: SchemaTree) -> set[tuple[str, TimeRange]]:
    """Return the databases of the sources' devices, each with the ranges of time that are read.

    For a known device, the database is found in the schema. For other devices, it is derived from the path.
    """
    found: set[tuple[str, TimeRange]] = set()
    for path, time_range in sources:
        device = tree.device(path)
        database = tree.database_of(path) if device is None else device.database
        if database is not None:
            found.add((database, time_range))
    return found


def databases_matching(text: str, tree: SchemaTree) -> list[str]:
    """Return the databases that have, or may have, something at or below one of the path patterns."""
    pattern = parse_pattern(text)
    database = tree.database_of(join_nodes(pattern.fixed_nodes))
    if database is not None:
        return [database]
    return [path for path in tree.databases() if pattern.overlaps(split_path(path))]


def _read(name: str, request: bytes) -> tuple[GroupId, int, float]:
    """Decode a request into the group, the entry up to which the asking node knows its schema, and the timeout.

    Raises BadRequest.
    """
    try:
        words = json.loads(request)
        group, known, seconds = GroupId(int(words["group"])), int(words["known"]), float(words["seconds"])
        if not seconds > 0:
            raise ValueError(f"invalid timeout of {seconds} seconds")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadRequest(name, error) from error
    return group, known, seconds

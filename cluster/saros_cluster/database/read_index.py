"""How far a strong read must see, for groups that are here and groups that are not.

    here         host.read: the leader confirms, this replica applies up to there
    elsewhere    "catch up" at a member, which does the same and answers (index, what changed in the schema)

So after catching up with a group, its schema is in this node's tree, and a view of an index not below the answer shows
all that was acknowledged before. A member that does not answer is followed by the next; who answered is asked first
another time.

Reads that need not be current do without, but for one thing: of a group that is elsewhere, what series it has must have
been told ("schema", by any member, as far as that one has applied it), or they would take what they do not know for
empty. It is asked for again all the time, so that new series show; and when a session was shown more of it, by another
node.

Thread-safe.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress

from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.multiraft.host import GroupHost, NotHere
from saros_cluster.multiraft.peers import BadRequest, CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader
from saros_cluster.routing.replicas import Replicas
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError
from saros_storage.scan.read_point import schema_of, split

CATCH_UP, SCHEMA = "catch up", "schema"
#: One member gets this long before the next is asked.
_ATTEMPT_SECONDS = 3.0
#: Likewise, for what a member tells at once.
_TOLD_SECONDS = 1.0
#: Before a group is asked again that nobody leads: an election takes longer.
_PAUSE_SECONDS = 0.02
#: A replica that waits for what others have looks so often whether it came.
_POLL_SECONDS = 0.002
_NOT_IN_TIME = "it has not confirmed a read in time"


class SchemaUnknown(StorageError):
    """No member of a group has told what series it has."""

    def __init__(self, group: GroupId, why: str) -> None:
        super().__init__(f"no member of group {group} tells which series it has: {why}", code=2016)


class ReadBarrier:
    """See the module."""

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
    ) -> None:
        self._node = node
        self._host = host
        self._peers = peers
        self._clock = clock
        self._routes = routes
        self._replicas = replicas
        self._schema = schema
        self._pool = pool
        self._is_down = is_down
        #: By group: who answered last.
        self._answering: dict[GroupId, NodeId] = {}
        #: By group that is not here: no entry behind this one has changed what is known of its schema.
        self._changed: dict[GroupId, int] = {}
        self._learning = threading.Lock()

    def is_local(self, group: GroupId) -> bool:
        """Whether this node has a replica, which others may count on: one that is only coming to be is none."""
        is_member = self._node in self._routes.now.members(group)
        return group == META or (is_member and group in self._replicas.machines)

    def holders(self, group: GroupId) -> list[NodeId]:
        """The members of a group, whoever answered last first, whoever does not answer last."""
        answering = self._answering.get(group)
        return sorted(self._routes.now.members(group), key=lambda node: (self._is_down(node), node != answering))

    def catch_up(self, groups: Iterable[GroupId], seconds: float) -> dict[int, int]:
        """By group: the index that a view must have applied. Raises NoLeader."""
        deadline_ns = self._clock.monotonic_ns() + int(seconds * 1e9)
        chosen = list(groups)
        far = [(g, self._pool.submit(self._ask, g, deadline_ns)) for g in chosen if not self.is_local(g)]
        found = self._wait_local([g for g in chosen if self.is_local(g)], deadline_ns)
        for group, answer in far:
            found[group] = answer.result()
        return found

    def catch_up_all(self, seconds: float) -> dict[int, int]:
        """The same with all groups, those that began meanwhile too, and with whoever has what others let go of."""
        deadline_ns = self._clock.monotonic_ns() + int(seconds * 1e9)
        found = self._catch_up_all(deadline_ns)
        orphans = self._schema.orphans
        if orphans:  # their groups were asked too early
            found |= self._catch_up_all(deadline_ns)
            self._schema.forget(orphans)
        return found

    def _catch_up_all(self, deadline_ns: int) -> dict[int, int]:
        found: dict[int, int] = {}
        while missing := [group for group in (META, *self._routes.now.groups) if group not in found]:
            found |= self.catch_up(missing, self._left(deadline_ns))
        return found

    def _is_gone(self, group: GroupId) -> bool:
        """Whether the group has ended: others have what it had."""
        return not self._routes.now.members(group)

    def _wait_local(self, waiting: list[GroupId], deadline_ns: int) -> dict[int, int]:
        found: dict[int, int] = {}
        while waiting:
            reads: list[tuple[GroupId, Future[int | None]]] = [(group, self._host.read(group)) for group in waiting]
            waiting = []
            for group, read in reads:
                try:
                    index = read.result(max(self._left(deadline_ns), 0.001))
                except FutureTimeoutError:
                    raise self._no_leader(group, _NOT_IN_TIME) from None
                except NotHere as error:
                    if self._is_gone(group):
                        continue
                    if group in self._routes.now.groups and not self.is_local(group):  # it was left meanwhile
                        found[group] = self._ask(group, deadline_ns)
                        continue
                    raise self._no_leader(group, str(error)) from error
                if index is not None:
                    found[group] = index
                elif self._left(deadline_ns) > 0:
                    waiting.append(group)
                else:
                    raise self._no_leader(group, _NOT_IN_TIME)
            if waiting:
                time.sleep(_PAUSE_SECONDS)
        return found

    def _no_leader(self, group: GroupId, why: str) -> NoLeader:
        routing = self._routes.now
        members = routing.members(group)
        silent = [node for node in members if node != self._node and self._is_down(node)]
        databases = [path for path in self._schema.tree.databases() if routing.schema_group(path) == group]
        return NoLeader(group, why, members, silent, databases)

    def _left(self, deadline_ns: int) -> float:
        return (deadline_ns - self._clock.monotonic_ns()) / 1e9

    def pause(self, seconds: float) -> None:
        """Let others go on."""
        time.sleep(seconds)

    def wait_session_visible(self, wanted: Mapping[int, int], seconds: float) -> bool:
        """Wait, but not for long, until groups show as much as a session was shown. Whether the schema does.

        Data of groups that are elsewhere is not waited for: a view asks its holders. Nor are groups that are no more.
        """
        deadline_ns = self._clock.monotonic_ns() + int(seconds * 1e9)
        there = (META, *self._routes.now.groups)
        data, schema = ([(GroupId(g), index) for g, index in p.items() if g in there] for p in split(wanted))
        with suppress(SchemaUnknown):
            self._learn_all({g: index for g, index in schema if self._is_schema_behind(g, index)}, deadline_ns)
        waiting = [(g, i) for g, i in data + schema if self.is_local(g) and not self._has_applied(g, i)]
        for group in {group for group, _ in waiting}:
            self._host.read(group)  # the leader tells at once what is committed
        while waiting := [(group, index) for group, index in waiting if not self._has_applied(group, index)]:
            if self._left(deadline_ns) <= 0:
                break
            time.sleep(_POLL_SECONDS)
        return all(self._has_applied(g, i) if self.is_local(g) else not self._is_schema_behind(g, i) for g, i in schema)

    def _is_schema_behind(self, group: GroupId, index: int) -> bool:
        """Whether a group is elsewhere, and its schema not known up to an entry."""
        return not self.is_local(group) and self._schema.applied_index(group) < index

    def has(self, group: GroupId, index: int) -> bool:
        """Whether this node has a replica that shows as much."""
        return self.is_local(group) and self._has_applied(group, index)

    def _has_applied(self, group: GroupId, index: int) -> bool:
        status = self._host.status(group)
        return status is not None and status.applied >= index

    # ------------------------------------------------------------------ elsewhere

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
        """The member's answer; None if another thread learned of the schema meanwhile: ask again."""
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

    # ------------------------------------------------------------------ elsewhere, without being current

    def ensure_schema_known(self, groups: Iterable[GroupId], seconds: float) -> None:
        """Learn the schema of remote groups that have not announced any yet. Raises SchemaUnknown."""
        unknown = [group for group in groups if not self.is_local(group) and not self._schema.applied_index(group)]
        self._learn_all(dict.fromkeys(unknown, 0), self._clock.monotonic_ns() + int(seconds * 1e9))

    def refresh(self, groups: Iterable[GroupId], seconds: float) -> None:
        """Learn what is new of the series in groups that are elsewhere. Raises SchemaUnknown, after all were asked."""
        elsewhere = [group for group in groups if not self.is_local(group)]
        self._learn_all(dict.fromkeys(elsewhere, 0), self._clock.monotonic_ns() + int(seconds * 1e9))

    def schema_shown(self, groups: Iterable[GroupId]) -> dict[int, int]:
        """No entry behind these has changed what this node's tree shows."""
        found = {schema_of(META): self._schema.version}
        for group in groups:
            machine = self._replicas.machines.get(group) if self.is_local(group) else None
            index = self._changed.get(group, 0) if machine is None else machine.region.partitions.schema_index
            found[schema_of(group)] = index
        return found

    def _learn_all(self, wanted: Mapping[GroupId, int], deadline_ns: int) -> None:
        """Learn what is new, up to some entries at least."""
        asked = [self._pool.submit(self._learn, group, index, deadline_ns) for group, index in wanted.items()]
        wait(asked)
        for future in asked:
            future.result()

    def _learn(self, group: GroupId, index: int, deadline_ns: int) -> None:
        why = "there was no time to ask"
        for node in self.holders(group):
            left = self._left(deadline_ns)
            if left <= 0:
                break
            try:
                self._ask_node(SCHEMA, group, node, min(left, _TOLD_SECONDS))
            except (Unreachable, RemoteError) as error:
                why = str(error)
            else:  # it told, here or meanwhile to another thread
                if not self._is_schema_behind(group, index):
                    return
                why = f"none of those that answered has applied entry {index}"
        raise SchemaUnknown(group, why)

    # ------------------------------------------------------------------ being asked

    def handlers(self) -> dict[str, CallHandler]:
        """What answers `CATCH_UP` and `SCHEMA` here."""
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
            found = self._wait_local([group], deadline_ns)
            if group not in found:
                raise NotHere(group, "the group has ended")
            index = found[group]
        news = machine.replica.delta_since(known)
        return json.dumps({"index": index, "schema": news.to_json()}).encode()


def _read(name: str, request: bytes) -> tuple[GroupId, int, float]:
    """The group, up to where its schema is known, and how long to wait. Raises BadRequest."""
    try:
        words = json.loads(request)
        group, known, seconds = GroupId(int(words["group"])), int(words["known"]), float(words["seconds"])
        if not seconds > 0:
            raise ValueError(f"{seconds} seconds")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadRequest(name, error) from error
    return group, known, seconds

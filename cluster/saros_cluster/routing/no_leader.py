"""The errors of requests to groups that are not available, and how long a step of a request waits for a group.

    NoLeader        2017  nothing was done
    NoReplica       2016  nothing was read
    SchemaUnknown   2016  nothing was read: the group's series are not known
    OutcomeUnknown  2018  it may have been done, or may still be
    DataMoving      2026  nothing was read, since slots moved; names only the databases

The errors name the group, its nodes, the silent nodes, and the databases concerned, if these are known: `root.plant
(group 3: nodes 1, 2, 3) has no leader: 2 of 3 nodes do not answer (1, 3)`. If earlier requests of this node found no
leader either, the errors also say since when. A step of a request waits for a leader up to the step's time limit, but
not beyond the request's deadline (`WriteRequest.deadline_ns`). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Self

from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.topology.topology import META
from saros_storage.base.errors import StorageError, UserMistake

#: The maximum number of databases that an error names.
_NAMED_MAX = 5
#: A step always gets at least this time, even at the request's deadline. The time is enough to ask each member that
#: answers.
_LEFT_MIN_NS = 200_000_000


def step_deadline_ns(now_ns: int, seconds: float, deadline_ns: int | None) -> int:
    """Return when a step of a request stops waiting: after `seconds`, or at the request's deadline if that is earlier.

    A step that begins close to the deadline, or after it, gets a minimum time.
    """
    full_ns = now_ns + int(seconds * 1e9)
    return full_ns if deadline_ns is None else min(max(deadline_ns, now_ns + _LEFT_MIN_NS), full_ns)


class _GroupFailed(StorageError):
    """A request to a group failed. `named` adds the databases concerned.

    `members` has the group's nodes. `silent` has the nodes that did not answer. `why` is the last failure other than
    silence. `since` is the time (UTC) when this node first found no leader.
    """

    code = 2017
    sentence = ""

    def __init__(
        self,
        group: GroupId,
        why: str,
        members: Sequence[NodeId] = (),
        silent: Collection[NodeId] = (),
        databases: Collection[str] = (),
        since: datetime | None = None,
    ) -> None:
        members = sorted(members)
        subject = _name(group, members, databases)
        outage = "" if since is None else f"; unavailable since {since:%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"{subject} {self.sentence}: {_reason(why, members, silent)}{outage}", code=self.code)
        self.group = group
        self.why = why
        self._members, self._silent, self._databases, self._since = members, silent, databases, since

    def named(self, databases: Collection[str]) -> Self:
        """Return the same error, with the names of the databases that it concerns."""
        return type(self)(self.group, self.why, self._members, self._silent, databases, self._since)


class NoLeader(_GroupFailed):
    """No leader of a group was found in time, and the command had no effect."""

    sentence = "has no leader"

    def unknown(self) -> OutcomeUnknown:
        """Return the error of a request whose other parts may have taken effect."""
        return OutcomeUnknown(self.group, self.why, self._members, self._silent, self._databases, self._since)


class NoReplica(_GroupFailed):
    """No node with a replica of a group's data answers."""

    code = 2016
    sentence = "has no replica that responds"


class SchemaUnknown(NoReplica):
    """No member of a group has returned the group's schema."""

    sentence = "has no replica that provides its schema"


class OutcomeUnknown(_GroupFailed):
    """A command may have taken effect, or may still take effect."""

    code = 2018
    sentence = "has not confirmed the change in time"


class DataMoving(UserMistake):
    """Slots of a read's databases moved while the read looked for their holders. A new attempt uses the new routing."""

    def __init__(self, databases: Collection[str]) -> None:
        text = f"data of {_paths(databases)}" if databases else "data"
        super().__init__(f"{text} is moving between nodes; run the query again", code=MOVED)


def _name(group: GroupId, members: Sequence[NodeId], databases: Collection[str]) -> str:
    name = "the meta group" if group == META else f"group {group}"
    nodes = f"node{'s' if len(members) > 1 else ''} {_list(members)}" if members else ""
    if not databases:
        return f"{name} ({nodes})" if nodes else name
    paths = _paths(databases)
    return f"{paths} ({name}: {nodes})" if nodes else f"{paths} ({name})"


def _paths(databases: Collection[str]) -> str:
    more = len(databases) - _NAMED_MAX
    return _list(sorted(databases)[:_NAMED_MAX]) + (f" and {more} more databases" if more > 0 else "")


def _reason(why: str, members: Sequence[NodeId], silent: Collection[NodeId]) -> str:
    """Return the reason of a failure.

    It begins with the silent nodes if they are at least half of the group, otherwise with `why`.
    """
    down = [node for node in members if node in silent]
    if not down:
        return why or "no member was asked in time"
    told = f"{len(down)} of {len(members)} nodes {'does' if len(down) == 1 else 'do'} not answer ({_list(down)})"
    if len(members) == 1:
        told = f"node {down[0]} does not answer"
    return told if 2 * len(down) >= len(members) or not why else f"{why}; {told}"


def _list(things: Sequence[object]) -> str:
    return ", ".join(map(str, things))

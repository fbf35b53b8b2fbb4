"""Proposes a command to a group from any node: finds the leader, and retries until the outcome is known.

    this node leads          host.propose
    another node leads       peers.call "propose"      -> DONE | NOT_LEADER, the leader | BUSY | MISTAKE code, text
    leader not known         asks the members in turn

A command contains the number of its request, so it takes effect once even if it is proposed twice. Therefore it is
retried until its outcome is known or the deadline has passed. After the deadline, NoLeader is raised if
the command certainly had no effect, and OutcomeUnknown if it may have had an effect. The request may set an earlier
deadline (`WriteRequest.deadline_ns`). If a group lost its leader long ago, a request waits only briefly; and if many
requests wait for such groups, further requests fail at once (`availability`).

The proposer is thread-safe, and runs on the caller's thread.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeoutError

import msgspec

from saros_cluster.multiraft.host import Busy, GroupHost, NotHere, NotLeader
from saros_cluster.multiraft.peers import BadRequest, CallHandler, Peers, RemoteError, Unreachable
from saros_cluster.multiraft.state_machine import ProposalLost, ReplacedBySnapshot
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.raft.node import ENTRY_BYTES_MAX
from saros_cluster.routing.availability import WAITING_MAX, Availability
from saros_cluster.routing.no_leader import NoLeader, OutcomeUnknown, step_deadline_ns
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake

PROPOSE = "propose"
#: The longest time for which a command waits for its outcome.
DEADLINE_SECONDS = 20.0
#: The time after which another node is asked if one does not answer. It is longer than a slow disk needs, and shorter
#: than the deadline.
_ATTEMPT_SECONDS = 2.0
_PAUSE_SECONDS = 0.02
#: No attempt begins if less time than this is left: the answer would arrive too late, so the outcome would be unknown.
_ANSWER_SECONDS = 0.05
#: The reason in the error of a request that may not wait because too many requests are waiting.
CROWDED = f"{WAITING_MAX} other requests of this node wait for leaders"
_HEAD = struct.Struct("<q")
#: The error code of a node that refuses a call because it is serving too many calls. The command was not proposed.
_TOO_MANY = 606
_DONE, _NOT_LEADER, _BUSY, _MISTAKE = b"d", b"n", b"b", b"m"


class _Search(msgspec.Struct):
    """The search for a group's leader: the node to ask next, if known, and the last failure other than silence."""

    node: NodeId | None
    why: str = ""
    #: True once a node was asked.
    asked: bool = False
    #: True once a command was sent without an answer that gives its outcome.
    unknown: bool = False
    #: Nodes that did not answer when they were last asked.
    silent: set[NodeId] = msgspec.field(default_factory=set)
    #: True if the request has a place among the waiting requests (`Availability.take_place`).
    has_place: bool = False

    def note_silence(self, error: Unreachable, *, is_down: bool) -> None:
        """Record that a node did not answer.

        If the node was reached, it may be waiting for other members of the group.
        """
        if error.sent and not is_down:
            self.why = f"node {error.node} has not confirmed it yet"
            self.silent.discard(error.node)
        else:
            self.silent.add(error.node)


class Proposer:
    """Proposes commands of this node to groups."""

    def __init__(
        self,
        node: NodeId,
        host: GroupHost,
        peers: Peers,
        clock: Clock,
        members: Callable[[GroupId], tuple[NodeId, ...]],
        sleep: Callable[[float], None],
        is_down: Callable[[NodeId], bool],
    ) -> None:
        """`members` returns a group's nodes; `sleep` waits some seconds; `is_down`: see `Parts.is_down`."""
        self._id = node
        self._host = host
        self._peers = peers
        self._clock = clock
        self._members = members
        self._sleep = sleep
        self._is_down = is_down
        #: The groups that were found without a leader.
        self.availability = Availability(clock)
        #: For each group without a replica here, the node that last executed a command.
        self._leaders: dict[GroupId, NodeId] = {}

    def leader_of(self, group: GroupId) -> NodeId | None:
        """Return the leader of a group, or None if this node does not know it."""
        return self._host.leader_of(group) or self._leaders.get(group)

    def propose(
        self, group: GroupId, data: bytes, seconds: float | None = None, deadline_ns: int | None = None
    ) -> None:
        """Propose a command.

        Return once the command has taken effect. Raises UserMistake if the command is refused, NoLeader,
        OutcomeUnknown. The attempts end after `seconds` (by default DEADLINE_SECONDS), or at the request's deadline if
        it is earlier.
        """
        if len(data) > ENTRY_BYTES_MAX:
            raise UserMistake(
                f"{len(data)} bytes for one group exceed the limit of {ENTRY_BYTES_MAX}; split the write", code=2006
            )
        limit_s = self.availability.patience_s(group, seconds or DEADLINE_SECONDS)
        until_ns = step_deadline_ns(self._clock.monotonic_ns(), limit_s, deadline_ns)
        search = _Search(self.leader_of(group))
        try:
            self._search(group, data, search, until_ns)
        except UserMistake:
            self.availability.note_success(group)
            raise
        finally:
            if search.has_place:
                self.availability.leave_place()
        self.availability.note_success(group)

    def _search(self, group: GroupId, data: bytes, search: _Search, until_ns: int) -> None:
        """Ask one node after the other until the command has taken effect. Raises what `propose` raises."""
        for turn in itertools.count():
            left = (until_ns - self._clock.monotonic_ns()) / 1e9
            if left <= (_ANSWER_SECONDS if search.asked else 0):
                raise self._failure(group, search)
            was_asked = search.node is not None
            search.asked = search.asked or was_asked
            if self._attempt(group, data, search, min(left, _ATTEMPT_SECONDS)):
                return
            self._sleep(min(_PAUSE_SECONDS, left))
            if search.node is None:
                members = self._members(group)
                if not members:
                    raise UserMistake(f"group {group} no longer exists; read the partition table again", code=MOVED)
                if was_asked:
                    self.availability.note_failure(group)
                self._take_place(group, search)
                # Alternate between the leader known here and the members, which may know of another leader.
                search.node = (self.leader_of(group) if turn % 2 else None) or members[turn // 2 % len(members)]

    def _take_place(self, group: GroupId, search: _Search) -> None:
        """Take a place among the waiting requests if the group has been unavailable. Raise if none is free."""
        if search.has_place or not self.availability.needs_place(group):
            return
        search.has_place = self.availability.take_place()
        if not search.has_place:
            search.why = search.why or CROWDED
            raise self._failure(group, search)

    def _failure(self, group: GroupId, search: _Search) -> NoLeader | OutcomeUnknown:
        """Return the error of a request that gives up."""
        self.availability.note_failure(group)
        failure = OutcomeUnknown if search.unknown else NoLeader
        members, since = self._members(group), self.availability.since(group)
        silent = search.silent if search.asked else set(filter(self._is_down, members))
        return failure(group, search.why, members, silent, since=since)

    def _attempt(self, group: GroupId, data: bytes, search: _Search, seconds: float) -> bool:
        """Send the command to `search.node`. Return whether it took effect. Choose the node to ask next."""
        node, search.node = search.node, None
        if node is None:
            return False
        try:
            if node == self._id:
                self._propose_local(group, data, seconds)
                return True
            return self._propose_remote(group, data, node, search, seconds)
        except NotLeader as error:
            search.why, search.node = str(error), error.leader
        except (ProposalLost, NotHere) as error:
            search.why = str(error)
        except Busy as error:
            search.why, search.node = str(error), node
        except Unreachable as error:
            search.unknown = search.unknown or error.sent
            search.note_silence(error, is_down=self._is_down(node))
            self._leaders.pop(group, None)
        except ReplacedBySnapshot as error:
            search.why, search.unknown = str(error), True
        except FutureTimeoutError:
            search.why, search.unknown = "no majority of replicas responded in time", True
            self._leaders.pop(group, None)
        return False

    def _propose_local(self, group: GroupId, data: bytes, seconds: float) -> None:
        outcome = self._host.propose(group, data).result(seconds)
        assert outcome is None

    def _propose_remote(self, group: GroupId, data: bytes, node: NodeId, search: _Search, seconds: float) -> bool:
        try:
            answer = self._peers.call(node, PROPOSE, _HEAD.pack(group) + data, seconds)
        except RemoteError as error:
            search.why, search.unknown = str(error), search.unknown or error.code != _TOO_MANY
            search.silent.discard(node)
            return False
        search.silent.discard(node)
        kind, rest = answer[:1], answer[1:]
        if kind == _DONE:
            self._leaders[group] = node
            return True
        if kind == _MISTAKE:
            code, text = json.loads(rest)
            raise UserMistake(text, code=code)
        if kind == _NOT_LEADER:
            leader = int(_HEAD.unpack(rest)[0])
            search.why = f"node {node} is not its leader"
            search.node = NodeId(leader) if leader >= 0 else None
            self._leaders.pop(group, None)
        else:
            search.why, search.node = "it has too many unreplicated entries", node
        return False

    def handler(self, check: Callable[[GroupId, bytes], None]) -> CallHandler:
        """Return the handler of `PROPOSE`. `check` raises StorageError for bytes that must not be written to a log."""

        def propose(_: NodeId, request: bytes) -> bytes:
            group, data = _read(request, check)
            try:
                self._propose_local(group, data, _ATTEMPT_SECONDS)
            except NotLeader as error:
                return _NOT_LEADER + _HEAD.pack(-1 if error.leader is None else error.leader)
            except (ProposalLost, NotHere):
                return _NOT_LEADER + _HEAD.pack(-1)
            except Busy:
                return _BUSY
            except UserMistake as error:
                return _MISTAKE + json.dumps([error.code, str(error)]).encode()
            except ReplacedBySnapshot as error:
                raise OutcomeUnknown(group, str(error)) from error
            except FutureTimeoutError:
                raise OutcomeUnknown(group, "no majority of replicas responded in time") from None
            return _DONE

        return propose


def _read(request: bytes, check: Callable[[GroupId, bytes], None]) -> tuple[GroupId, bytes]:
    """Decode a request: the group and the command. Raises BadRequest."""
    try:
        (number,) = _HEAD.unpack_from(request)
        group, data = GroupId(number), request[_HEAD.size :]
        check(group, data)
    except (struct.error, StorageError) as error:
        raise BadRequest(PROPOSE, error) from error
    return group, data

"""Coordinates drops: begins and ends them, and repeats requests that a drop or a move of slots overtakes.

    drop         meta group numbers it -> all groups apply it -> meta group ends it              (`data.drops`)
    overtaken    a group refuses an entry that has not seen a drop (2021), or is for slots that moved (2026); the
                 coordinator then learns of the drop or move, and prepares the request again

Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from saros_cluster.data.command import NO_REQUEST, encode_command
from saros_cluster.data.drops import OVERTAKEN, Drop, effect_of, overlaps, reaches
from saros_cluster.database.read_index import ReadBarrier
from saros_cluster.database.write_coordinator import WriteCoordinator
from saros_cluster.meta.state import BeginDrop, BeginDropSeries, EndDrop
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_cluster.routing.no_leader import NoLeader, step_deadline_ns
from saros_cluster.routing.proposer import DEADLINE_SECONDS, Proposer
from saros_cluster.routing.routes import Routes
from saros_cluster.routing.routing import Routing
from saros_cluster.routing.schema_view import ClusterSchema
from saros_cluster.topology.topology import META
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.base.paths import join_nodes, split_path
from saros_storage.base.write_request import WriteRequest
from saros_storage.mutation.mutation import PlacedTablet

#: The number of times that a request is prepared again because drops or moves of slots overtake it.
RENEWALS_MAX = 100
#: The number of times that a reader checks whether another coordinator has ended its drop, before it completes the drop
#: itself.
_OTHERS_TURNS = 5
#: The pause before each of these checks: a few network round trips are needed to end a drop or to learn of a move.
TRIPS_SECONDS = 0.02
#: The time for which a write waits for a new routing while its slots move, before it asks the meta group.
_MOVE_SECONDS = 0.25


class DropCoordinator:
    """Executes drops from this node, and repeats requests that drops or moves of slots overtake."""

    def __init__(
        self,
        schema: ClusterSchema,
        routes: Routes,
        proposer: Proposer,
        entries: WriteCoordinator,
        read_barrier: ReadBarrier,
        clock: Clock,
    ) -> None:
        self._schema = schema
        self._routes = routes
        self._proposer = proposer
        self._entries = entries
        self._read_barrier = read_barrier
        self._clock = clock

    # ------------------------------------------------------------------ drops

    def drop(self, command: BeginDrop | BeginDropSeries, deadline_ns: int | None) -> None:
        """Begin a drop once no slots are moving, and make all groups apply it. Raises PartialFailure.

        Slots may start to move, and groups may end, before all groups have applied the drop. In these cases, the
        remainder of the drop is repeated.
        """
        begin = WriteRequest(deadline_ns=deadline_ns)
        deadline_ns = step_deadline_ns(self._clock.monotonic_ns(), DEADLINE_SECONDS, deadline_ns)
        self._retry_during_moves(lambda: self._entries.change_meta(command, begin), deadline_ns)
        self._retry_during_moves(partial(self.finish, None, deadline_ns), deadline_ns)

    def _retry_during_moves(self, act: Callable[[], None], deadline_ns: int) -> None:
        while True:
            routing = self._routes.now
            try:
                act()
            except UserMistake as error:
                if self._clock.monotonic_ns() >= deadline_ns:
                    raise
                self.prepare_retry(error, (), routing, deadline_ns)
            else:
                return

    def finish(self, seconds: float | None = None, deadline_ns: int | None = None) -> None:
        """Execute all pending drops.

        Each group applies the drops in the order of their numbers. The call is idempotent, and several nodes may make
        it at once. The meta group's leader makes it from time to time, in place of coordinators that failed.
        """
        pending = sorted(self._schema.pending.items())
        if not pending:
            return
        self._entries.in_all(
            {group: effect_of(pending[-1][1]) for group in self._routes.now.groups},
            lambda group: self._carry_out(group, pending, seconds, deadline_ns),
        )
        for number, _ in pending:
            self._entries.change_meta(EndDrop(number), WriteRequest(deadline_ns=deadline_ns))

    def _carry_out(
        self,
        group: GroupId,
        pending: Sequence[tuple[int, Drop]],
        seconds: float | None,
        deadline_ns: int | None,
    ) -> None:
        for number, drop in pending:
            command = encode_command(NO_REQUEST, effect_of(drop), number)
            self._proposer.propose(group, command, seconds, deadline_ns)

    def finish_overlapping(self, paths: Sequence[str], deadline_ns: int | None) -> None:
        """Finish the pending drops that concern one of `paths`, the databases and devices to be created."""
        self._wait_drops_visible(deadline_ns)
        if any(reaches(drop, path) for drop in self._schema.pending.values() for path in paths):
            self.finish(None, deadline_ns)

    def wait_drops_applied(self, patterns: Collection[str], seconds: float, deadline_ns: int | None = None) -> None:
        """Wait until all groups have applied those visible drops that overlap the path patterns.

        The group that stores the schema drops a series before other groups drop the series' points. Until then, the
        other groups accept points of that series from coordinators that have not seen the drop. A client that reads
        that the series is gone could write points through such a coordinator, get an acknowledgement, and lose the
        points to the drop. A read therefore waits.

        Raises StorageError (2017) if the drops cannot be completed in time.
        """
        self._wait_drops_visible(deadline_ns)
        # A database is hidden as soon as its drop begins. A series is hidden once its group has applied the drop.
        begun = {number for number, drop in self._schema.pending.items() if overlaps(drop, patterns)}
        for _ in range(_OTHERS_TURNS):
            if begun.isdisjoint(self._schema.pending):
                return
            self._read_barrier.pause(TRIPS_SECONDS)  # the node that began the drop is probably about to end it
            self._entries.wait_visible([META], deadline_ns)
        deadline_ns = step_deadline_ns(self._clock.monotonic_ns(), seconds, deadline_ns)
        try:
            self._retry_during_moves(partial(self.finish, seconds, deadline_ns), deadline_ns)
        except StorageError as error:
            raise StorageError(f"the drop may not be complete on all nodes yet: {error}", code=2017) from error

    def _wait_drops_visible(self, deadline_ns: int | None) -> None:
        """Wait until this node's state of the meta group includes all drops that data groups have announced."""
        if max(self._schema.drops.values(), default=0) > self._schema.version:
            self._entries.wait_visible([META], deadline_ns)

    # ------------------------------------------------------------------ overtaken requests

    def retry_overtaken(self, act: Callable[[], None], devices: Sequence[str], deadline_ns: int | None) -> None:
        """Run `act`, and repeat it until the deadline if a drop or a move overtakes it. Raise the last error."""
        overtaken: UserMistake | None = None
        try:
            for _ in range(RENEWALS_MAX):
                routing = self._routes.now
                try:
                    act()
                except UserMistake as error:
                    overtaken = error
                else:
                    return
                if deadline_ns is not None and self._clock.monotonic_ns() >= deadline_ns:
                    break
                self.prepare_retry(overtaken, devices, routing, deadline_ns)
        except NoLeader as error:
            if overtaken is None:
                raise
            # Some groups may have applied their part of the request in an earlier attempt.
            raise error.unknown() from error
        assert overtaken is not None
        raise overtaken

    def prepare_retry(
        self, error: UserMistake, devices: Sequence[str], routing: Routing, deadline_ns: int | None
    ) -> None:
        """Find out which drop or move made groups refuse a request.

        Raise `error` if the refusal had another reason.

        The request was prepared with `routing`. If slots moved, wait until the move is over, since each attempt before
        that is refused again and costs a log entry.
        """
        if error.code == MOVED:
            if not self._routes.await_open(routing, _MOVE_SECONDS):
                self._entries.wait_visible([META], deadline_ns)
        elif error.code == OVERTAKEN:
            self._learn_drops(devices, deadline_ns)
        else:
            raise error

    def _learn_drops(self, devices: Sequence[str], deadline_ns: int | None) -> None:
        """Find out which drops concern the databases of these devices.

        If all of these drops are already known, complete a pending drop.
        """
        groups = self.schema_groups(devices)
        before = self._schema.drops
        self._entries.wait_visible(groups, deadline_ns)
        if before == self._schema.drops:
            self._entries.wait_visible([META], deadline_ns)
            self.finish(None, deadline_ns)
            self._entries.wait_visible(groups, deadline_ns)

    def schema_groups(self, devices: Sequence[str]) -> set[GroupId]:
        """Return the groups that store the schema of these devices' databases, as far as the databases are known."""
        databases = {found for device in devices if (found := self._schema.tree.database_of(device)) is not None}
        return {self._routes.now.schema_group(database) for database in databases}

    def newest_visible_drop(self, drops: Mapping[GroupId, int], placed: Sequence[PlacedTablet]) -> int:
        """Return the newest drop that the schema reflects for all databases to which these tablets belong."""
        databases = {join_nodes(split_path(p.known.head.device)[: p.depth]) for p in placed if p.known is not None}
        return min((drops.get(self._routes.now.schema_group(d), 0) for d in databases), default=0)

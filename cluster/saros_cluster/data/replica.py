"""A node's replica of a data group: its region and the group's other state, as of the last validated entry.

    region       points and schema              shipments    files that come through the log
    ownership    slots that the group owns      schema_feed  changes of the schema, for other nodes
    requests     requests that took effect      validated_index, reached, skipped, ...: position in the log
    drops        drops that were applied

`RegionMachine` changes the replica entry by entry, and replaces it when a snapshot is installed. Others only read it:
queries, which see the slots that their partition table assigns to the group (`pin`), and groups that fetch slots that
have left this group (`describe`).

All access is under the region's lock. Public methods that read acquire the lock. The caller of a method that changes
the replica must hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from saros_cluster.data.applied_requests import AppliedRequests
from saros_cluster.data.command import TableVersion
from saros_cluster.data.drops import Drops
from saros_cluster.data.log_shipped_files import ShippedFiles
from saros_cluster.data.ownership import LEFT, Arrival, Open, Ownership
from saros_cluster.data.schema_delta import SchemaDelta
from saros_cluster.data.schema_feed import SchemaFeed, Told
from saros_cluster.data.schema_transfer import changes_to_transfer
from saros_cluster.data.state_file import GroupState
from saros_cluster.placement.slots import MOVED
from saros_cluster.raft.messages import GroupId
from saros_storage.base.errors import UserMistake
from saros_storage.mutation.mutation import Mutation
from saros_storage.region import Region
from saros_storage.scan.snapshot import MemorySource, PartitionSnapshot
from saros_storage.schema import SchemaChange, decode_change

Pinned = Mapping[str, Sequence[PartitionSnapshot]]
#: Opens a source that reads a partition (database, slice) at its former group until it has arrived.
OpenMigrationSource = Callable[[Arrival, str, int], MemorySource]


class Replica:
    """The local state of a data group: region, ownership, requests, drops, and position in the log."""

    def __init__(
        self,
        state: GroupState,
        region: Region,
        ownership: Ownership,
        shipments: ShippedFiles,
        underlay: OpenMigrationSource,
        on_schema_delta: Told,
    ) -> None:
        """Start in the state of the state file.

        `underlay` opens a source for the data of slots that has not arrived yet.
        """
        self.region = region
        self.ownership = ownership
        self.shipments = shipments
        self._underlay = underlay
        self._generation = state.generation
        #: The log position of the last snapshot that was installed here.
        self.installed = state.installed
        #: The last validated entry. A restart replays the entries after `released` up to this one.
        self.validated_index = state.index
        #: All entries up to this one are in files.
        self.released = state.released
        #: The last entry that was applied since the start or is in files. Later entries may not be in memory yet.
        self.reached = state.released
        #: The entries of the remaining log that had no effect.
        self.skipped = list(state.skipped)
        #: For each entry of the remaining log that took effect only in part, the positions of the applied tablets.
        self.partly = {index: list(places) for index, places in state.partly}
        #: For each entry of the remaining log whose deletions skipped some slots, the skipped slots.
        self.spared = {index: frozenset(slots) for index, slots in state.spared}
        self.requests = AppliedRequests(state.requests, state.arrived_requests)
        self.drops = Drops.from_json(state.drops)
        self.schema_feed = SchemaFeed(state.index, ownership, self.drops, on_schema_delta)
        for arrival in ownership.arrivals.values():
            self.begin_with(arrival)
        #: The files may contain the effects of entries up to this one, even if a replay has not reached them yet.
        self._found = max([region.partitions.applied, *(p.manifest.created for p in region.partitions)])
        #: The last filtered view: the pinned snapshots, the versions by which they were filtered, and the result.
        self._filtered: tuple[Pinned, tuple[int, ...], Pinned] = ({}, (), {})
        #: The entry that released slots whose files are not removed yet.
        self.removing: int | None = None

    # ------------------------------------------------------------------ entries

    def advance(self, index: int) -> bool:
        """Advance past an entry that changes no points. Return whether the entry is new rather than replayed."""
        is_new = index > self.validated_index
        self.region.partitions.skip(index)
        self.reached, self.validated_index = max(self.reached, index), max(self.validated_index, index)
        return is_new

    def skip(self, index: int, mutation: Mutation) -> None:
        """Skip an entry that has no effect."""
        self.region.partitions.skip(index)
        for staged in mutation.loads:
            self.shipments.drop_of(staged)

    def take_effect(self, index: int, mutation: Mutation, spared: Collection[int] = ()) -> None:
        """Apply a validated entry to the region, which takes over the files that it loads.

        Deletions and drops skip the `spared` slots, and the slots that were fenced before this entry: their new group
        applies the deletion too.
        """
        for staged in mutation.loads:
            self.shipments.load(staged)
        ownership = self.ownership

        def is_exempt(database: str, number: int) -> bool:
            slot = ownership.slot(database, number)
            return slot in spared or ownership.is_fenced_at(slot, index)

        if ownership.fences or spared:
            self.region.take_effect(index, mutation, is_exempt)
        else:
            self.region.take_effect(index, mutation)
        self.region.freeze_large()

    def begin_with(self, arrival: Arrival) -> None:
        """Create the partitions of an arrival.

        The data of these partitions is read at the former group until it has arrived.
        """
        for database, number in arrival.partitions:
            if self.region.schema.is_database(database):
                underlay = self._underlay(arrival, database, number)
                self.region.begin_with(database, number, arrival.epoch, arrival.entry, underlay)

    def all_schema(self) -> list[SchemaChange]:
        """Return the changes that produce the current schema from an empty one."""
        return [decode_change(line) for line in self.region.schema.dump().splitlines()]

    def state(self, first: int | None) -> GroupState:
        """Return the current state, as if the log began at entry `first`, or by default at the first needed entry.

        Entries that are not replayed yet always count as needed, since the partitions do not know of them.
        """
        with self.region.lock:
            needed = self.region.flusher.first_needed() if first is None else first
            waiting = {loaded.staged.name for p in self.region.partitions for loaded in p.loaded}
            shipped = self.shipments.first_needed(waiting)
            needed = min(needed, self.reached + 1, *(i for i in (shipped, self.removing) if i is not None))
            self.skipped = [index for index in self.skipped if index >= needed]
            self.partly = {index: places for index, places in self.partly.items() if index >= needed}
            self.spared = {index: slots for index, slots in self.spared.items() if index >= needed}
            return GroupState(
                index=self.validated_index,
                released=needed - 1,
                skipped=tuple(self.skipped),
                partly=tuple(self.partly.items()),
                spared=tuple((index, sorted(slots)) for index, slots in self.spared.items()),
                requests=tuple(self.requests.dump()),
                arrived_requests=tuple(self.requests.dump_arrived()),
                drops=self.drops.to_json(),
                generation=self._generation,
                installed=self.installed,
                schema=self.region.schema.dump(),
                ownership=self.ownership.to_json(),
            )

    # ------------------------------------------------------------------ readers

    def pin(self, known: TableVersion | None = None) -> tuple[Region, Pinned, int]:
        """Pin the region for a reader. The caller unpins it.

        Return the region, the snapshots that the reader may see, and the last entry that they may contain. `known` is
        the version of the reader's table, or None if no slot has ever moved. Raises UserMistake (MOVED) if a reader
        with that table may look for slots that are already removed here, or have not arrived here yet.
        """
        region = self.region
        with region.lock:
            if known is not None and known.inbound == LEFT:
                self._check_left(known.epoch)
            elif known is not None:
                self.ownership.check_view(known.epoch, known.inbound)
            pinned = region.pin()
            if known is not None and self._may_have_others:
                pinned = self._filtered_view(pinned, known)
            return region, pinned, max(region.partitions.applied, self._found)

    @property
    def _may_have_others(self) -> bool:
        """True if there may be data here that a reader must read from another group instead.

        After a restart, files may contain slots whose `Open` the log has not replayed yet.
        """
        return self.ownership.has_moved or self.validated_index < self._found

    def _filtered_view(self, pinned: Pinned, known: TableVersion) -> Pinned:
        """Return the snapshots of slots that the reader's table assigns to this group.

        Return the same object while neither the snapshots nor the versions change.
        """
        ownership = self.ownership
        at = (*known, ownership.fenced, ownership.opened, ownership.released)
        before, then, found = self._filtered
        if before is pinned and then == at:
            return found
        epoch, inbound, _ = known
        found = {
            database: tuple(s for s in snapshots if ownership.shows(ownership.slot(database, s.slice), epoch, inbound))
            for database, snapshots in pinned.items()
        }
        self._filtered = (pinned, at, found)
        return found

    def knows_table(self, known: TableVersion) -> bool:
        """Return whether the replica knows of all moves to and from its group that the reader's table contains."""
        with self.region.lock:
            ownership = self.ownership
            is_told = known.inbound <= ownership.opened and known.outbound <= ownership.fenced
            return known.inbound == LEFT or is_told

    def describe(self, epoch: int) -> tuple[int, Open, list[SchemaChange]]:
        """Return the data for the group that receives a move's slots: the fencing entry, an `Open`, and the schema.

        Of the `Open`'s arrival, only the epoch and the partitions are filled in. Raises UserMistake (MOVED) if the
        slots are released, or the fencing entry is not replayed here yet.
        """
        region, ownership = self.region, self.ownership

        def is_moving(database: str, number: int) -> bool:
            return ownership.shows(ownership.slot(database, number), epoch, LEFT)

        with region.lock:
            self._check_left(epoch)
            fence = ownership.fences[epoch]
            keys = sorted(p.key for p in region.partitions if is_moving(*p.key))
            changes = self.all_schema()
            requests = self.requests.ranges_leaving(ownership.leaving(epoch), fence)
            drops = self.drops.to_json()

        changes = changes_to_transfer(region.schema, changes, lambda database: is_moving(database, 0))
        arrival = Arrival(epoch, 0, 0, GroupId(0), 0, (), (), tuple(keys))
        return fence, Open(arrival, requests, drops), changes

    def has_left(self, epoch: int) -> bool:
        """Return whether slots that a move took away are still here, with all entries before the fence applied."""
        with self.region.lock:
            return self.ownership.has_left(epoch) and self._has_reached(epoch)

    def check_left(self, epoch: int) -> None:
        """Raise UserMistake (MOVED) unless `has_left(epoch)`."""
        with self.region.lock:
            self._check_left(epoch)

    def _check_left(self, epoch: int) -> None:
        self.ownership.check_view(epoch, LEFT)
        if not self._has_reached(epoch):
            raise UserMistake("this replica has just started; ask another one or retry", code=MOVED)

    def _has_reached(self, epoch: int) -> bool:
        """Return whether the entry that fenced the move's slots is applied.

        After a restart, the entry counts as applied only once the replay reaches it.
        """
        return self.reached >= self.ownership.fences[epoch]

    def arrivals(self) -> list[Arrival]:
        """Return the arrivals that are not complete yet."""
        with self.region.lock:
            return list(self.ownership.arrivals.values())

    def held(self) -> list[tuple[tuple[str, int], int, bool]]:
        """Return this replica's partitions, each with the move that brought it, and whether all of its data is here."""
        with self.region.lock:
            return [(p.key, p.manifest.generation, p.is_whole) for p in self.region.partitions]

    @property
    def moves(self) -> tuple[int, int, int]:
        """The last moves that took slots away, that brought slots, and whose slots were removed here."""
        with self.region.lock:
            return self.ownership.fenced, self.ownership.opened, self.ownership.released

    def is_arriving(self, arrival: Arrival) -> bool:
        """Return whether some of the arrival's partitions are still read at their former group."""
        came = set(arrival.partitions)
        with self.region.lock:
            return any(p.underlay is not None and p.key in came for p in self.region.partitions)

    def delta_since(self, known: int) -> SchemaDelta:
        """Return the changes of the schema after entry `known`. Any thread."""
        with self.region.lock:  # files may contain later entries until the replay reaches them
            return self.schema_feed.since(known, self.validated_index, self.all_schema)

    def stale_shipments(self, before_ns: int) -> list[str]:
        """Return the names of shipped files that have received nothing since `before_ns` of the monotonic clock."""
        with self.region.lock:
            return self.shipments.stale(before_ns)

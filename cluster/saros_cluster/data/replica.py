"""A node's replica of a data group: its region and the state beside it, as of the last entry that was judged.

    region       points and schema              shipments    files that come through the log
    ownership    which slots, since when        schema_feed  changes of the schema that other nodes ask for
    requests     which had their effect         validated_index, reached, skipped, ...: how far, and what was skipped
    drops        which were carried out

`RegionMachine` changes it, entry by entry, and replaces it when a snapshot arrives. Others only read it: queries, which
see what their table of slots says (`pin`), and nodes that fetch slots that have left (`describe`).

Everything is done under the region's lock: public methods that read acquire it; those that change are called with it.
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
#: Reads a partition (database, slice) where it was, until it has arrived.
OpenMigrationSource = Callable[[Arrival, str, int], MemorySource]


class Replica:
    """See the module."""

    def __init__(
        self,
        state: GroupState,
        region: Region,
        ownership: Ownership,
        shipments: ShippedFiles,
        underlay: OpenMigrationSource,
        on_schema_delta: Told,
    ) -> None:
        """As the state file says. `underlay`: reads what lies elsewhere of slots that came."""
        self.region = region
        self.ownership = ownership
        self.shipments = shipments
        self._underlay = underlay
        self._generation = state.generation
        #: The place of the last snapshot that was installed here.
        self.installed = state.installed
        #: Entries up to here were judged; after a start, those behind what is in files come again.
        self.validated_index = state.index
        #: Entries up to here are in files.
        self.released = state.released
        #: The last entry that came since the start, or is in files: what is behind it may not be in memory yet.
        self.reached = state.released
        #: Those without an effect among the entries that the log still has.
        self.skipped = list(state.skipped)
        #: Of the same: by entry, the places of those of its tablets that had an effect.
        self.partly = {index: list(places) for index, places in state.partly}
        #: Likewise, the slots that their deletions spared.
        self.spared = {index: frozenset(slots) for index, slots in state.spared}
        self.requests = AppliedRequests(state.requests, state.arrived_requests)
        self.drops = Drops.from_json(state.drops)
        self.schema_feed = SchemaFeed(state.index, ownership, self.drops, on_schema_delta)
        for arrival in ownership.arrivals.values():
            self.begin_with(arrival)
        #: Its files may show entries up to here, which the log has still to bring again.
        self._found = max([region.partitions.applied, *(p.manifest.created for p in region.partitions)])
        #: What was pinned last, for which epoch, and what of it a reader finds.
        self._filtered: tuple[Pinned, tuple[int, ...], Pinned] = ({}, (), {})
        #: The entry by which slots are let go of whose files are still here.
        self.removing: int | None = None

    # ------------------------------------------------------------------ entries

    def advance(self, index: int) -> bool:
        """Advance past an entry that changes no points; return whether it is validated for the first time."""
        is_new = index > self.validated_index
        self.region.partitions.skip(index)
        self.reached, self.validated_index = max(self.reached, index), max(self.validated_index, index)
        return is_new

    def skip(self, index: int, mutation: Mutation) -> None:
        """An entry has no effect."""
        self.region.partitions.skip(index)
        for staged in mutation.loads:
            self.shipments.drop_of(staged)

    def take_effect(self, index: int, mutation: Mutation, spared: Collection[int] = ()) -> None:
        """What is loaded is the region's from now on.

        Nothing goes of slots that are `spared`, nor of those that have left the group: who gets these does it, too.
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
        """What lies elsewhere is read there, until it has arrived."""
        for database, number in arrival.partitions:
            if self.region.schema.is_database(database):
                underlay = self._underlay(arrival, database, number)
                self.region.begin_with(database, number, arrival.epoch, arrival.entry, underlay)

    def all_schema(self) -> list[SchemaChange]:
        """The changes that make the schema as it is."""
        return [decode_change(line) for line in self.region.schema.dump().splitlines()]

    def state(self, first: int | None) -> GroupState:
        """As of now. What a log still has to bring, no partition can say that it needs."""
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

    # ------------------------------------------------------------------ who looks

    def pin(self, known: TableVersion | None = None) -> tuple[Region, Pinned, int]:
        """The region, what can be read of it now, and the entry behind which none shows. Unpin the region.

        `known`: the table of whoever reads; None: nothing has ever moved. Raises UserMistake (MOVED) if by that table
        slots are sought here that are gone, or not here yet.
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
        """Whether a reader may have to look for some of what is here in another group.

        Files may hold slots of which the log says only when it comes again, after a start, that they came.
        """
        return self.ownership.has_moved or self.validated_index < self._found

    def _filtered_view(self, pinned: Pinned, known: TableVersion) -> Pinned:
        """What a reader with that table finds here: the rest is another group's. The same value for the same."""
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
        """What the group must know that gets the slots that a move took away here, and the entry that did so.

        Of the arrival only the partitions are filled in. Raises UserMistake (MOVED) if that entry is not reached here.
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
        """Whether slots that a move took away are still here, and nothing of them changes any more."""
        with self.region.lock:
            return self.ownership.has_left(epoch) and self._has_reached(epoch)

    def check_left(self, epoch: int) -> None:
        """Raise UserMistake (MOVED) unless slots that a move took away are still here, and all of them again."""
        with self.region.lock:
            self._check_left(epoch)

    def _check_left(self, epoch: int) -> None:
        self.ownership.check_view(epoch, LEFT)
        if not self._has_reached(epoch):
            raise UserMistake("this replica has just started: ask another one, or again", code=MOVED)

    def _has_reached(self, epoch: int) -> bool:
        """Whether all is here that a move took away: who has started again has it when the log has brought it."""
        return self.reached >= self.ownership.fences[epoch]

    def arrivals(self) -> list[Arrival]:
        """What came here, and is not settled."""
        with self.region.lock:
            return list(self.ownership.arrivals.values())

    def held(self) -> list[tuple[tuple[str, int], int, bool]]:
        """The partitions that are here, each with the move that brought it, and whether what it had before is here."""
        with self.region.lock:
            return [(p.key, p.manifest.generation, p.is_whole) for p in self.region.partitions]

    @property
    def moves(self) -> tuple[int, int, int]:
        """The last moves that took slots away, brought some, and were let go of."""
        with self.region.lock:
            return self.ownership.fenced, self.ownership.opened, self.ownership.released

    def is_arriving(self, arrival: Arrival) -> bool:
        """Whether something of it is still read elsewhere."""
        came = set(arrival.partitions)
        with self.region.lock:
            return any(p.underlay is not None and p.key in came for p in self.region.partitions)

    def delta_since(self, known: int) -> SchemaDelta:
        """Return the changes of the schema after entry `known`. Any thread."""
        with self.region.lock:  # files may show entries behind the last judged, which the log has still to bring again
            return self.schema_feed.since(known, self.validated_index, self.all_schema)

    def stale_shipments(self, before_ns: int) -> list[str]:
        """Files that nobody has continued to send since that time of the clock."""
        with self.region.lock:
            return self.shipments.stale(before_ns)

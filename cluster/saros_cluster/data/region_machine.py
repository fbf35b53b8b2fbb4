"""The state machine of a data group: its log's entries become a region of storage.

    entry i    fences, opens, lets go of slots                 see `ownership`
               a piece of a file that is to be loaded          see `shipments`
               client's request had its effect before          no effect, answered as done
               for a slot that is not the group's              no effect, refused (2026)
               a drop that is not newer than the last          likewise
               written without having seen a drop              no effect, refused (2021): see `drops`
               loads a file that has not come as a whole       no effect, refused (2027): see `shipments`
               does not fit the schema as of entry i - 1       no effect, answered with the reason
               else                                            schema tree, tombstones, MemTables; answered None

What an entry does follows from the entries before it and nothing else, so all members agree; after a restart too, when
entries up to `state.index` come again (`state_file`): those are not judged a second time.

The schema of a database's series is kept by the group that owns the database's first slice; only there are tablets
compared with it. Elsewhere a tablet's own types are taken: its writer has asked the owner.

`apply` is called by one thread; the region is thread-safe; `release` comes from the region's flusher.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from saros_cluster.data.command import Command, Known, Request, decode_command
from saros_cluster.data.drops import OVERTAKEN, Drops, drop_of
from saros_cluster.data.ownership import LEFT, MOVED, Arrival, Bring, Fence, LetGo, Open, Ownership, Settle, Transfer
from saros_cluster.data.requests import Requests
from saros_cluster.data.schema_news import SchemaNews
from saros_cluster.data.shipments import LOST, Abandon, Piece, Shipments, Shipping
from saros_cluster.data.snapshots import pull_snapshot
from saros_cluster.data.state_file import GroupState, encode_state, load_state, save_state
from saros_cluster.machine import Outcome
from saros_cluster.placement.ring import NodeId
from saros_cluster.placement.slots import slot_of
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Snapshot
from saros_storage.capture.capture import Chosen, everything
from saros_storage.capture.shelf import Shelf
from saros_storage.chunk_cache import ChunkCache
from saros_storage.clock import Clock
from saros_storage.compaction.compactor import Compactor
from saros_storage.disk import Disk
from saros_storage.errors import StorageError, UserMistake
from saros_storage.layout import confirm
from saros_storage.mutation import Mutation, Placed
from saros_storage.paths import join_nodes, parse_pattern, split_path
from saros_storage.placing import Fitting
from saros_storage.region import Region
from saros_storage.schema import (
    OF_ALL_GROUPS,
    AlterSeries,
    CreateDatabase,
    CreateSeries,
    DeleteDatabase,
    DeleteSeries,
    SchemaChange,
    decode_change,
)
from saros_storage.snapshot import MemorySource, PartitionSnapshot
from saros_storage.store_options import StoreOptions
from saros_storage.tablet_codec import TabletFrame

#: A flush lets the log be cut when it frees so many entries at least: the state is written each time.
_RELEASE_ENTRIES = 2_000
#: Or so much of files that came through the log.
_RELEASE_SHIPPED_BYTES = 16 << 20
_FULL_DISK_SECONDS = 1.0
_CACHED_DATABASES = 65_536
#: Entries that changed the schema and are kept for nodes that ask what is new.
_NEWS_KEPT = 2_000
#: Series of one device that go from group to group at a time.
_PART_SERIES = 1_000
#: The folder that a snapshot is fetched into.
_STAGING = "staging"
Told = Callable[[SchemaNews], None]
Pinned = Mapping[str, Sequence[PartitionSnapshot]]
#: Reads a partition (database, slice) where it was, until it has arrived.
Underlay = Callable[[Arrival, str, int], MemorySource]
Compact = Callable[[int], None]


class RegionMachine:
    """See the module. Implements `StateMachine` and the region's `Journal`."""

    def __init__(
        self,
        group: GroupId,
        folder: str,
        state_path: str,
        options: StoreOptions,
        disk: Disk,
        clock: Clock,
        cache: ChunkCache,
        owned: npt.NDArray[np.bool_],
        underlay: Underlay,
        told: Told,
        shelf: Shelf,
        ask: Callable[[NodeId, str, bytes], bytes],
        compactor: Compactor | None = None,
    ) -> None:
        """Load the region that lies below `folder`. `told` hears what becomes of the schema. Raises CorruptFile.

        `owned`: bool[slots], what the group begins with; `underlay`: reads what lies elsewhere of slots that came.
        """
        self.group = group
        self._folder = folder
        self._options = options
        self._disk = disk
        self._clock = clock
        self._cache = cache
        self._path = state_path
        self._owned = owned
        self._underlay = underlay
        self._told = told
        self._shelf = shelf
        self._ask = ask
        self._compactor = compactor
        self._fitting = Fitting()
        self._compact: Compact = lambda _: None
        self._sync: Callable[[], None] = lambda: None
        self._saving = threading.Lock()
        #: Held while entries are applied, and while the region is replaced.
        self._applying = threading.Lock()
        #: What `stage` fetched: the state that goes with it.
        self._staged: GroupState | None = None
        #: What was pinned last, for which epoch, and what of it a reader finds.
        self._filtered: tuple[Pinned, tuple[int, ...], Pinned] = ({}, (), {})
        if disk.exists(state_path):
            confirm(disk, state_path)
        self._load(load_state(disk, state_path))
        for name in disk.list(folder):
            if name != str(self._generation):
                disk.remove_tree(os.path.join(folder, name))

    def _load(self, state: GroupState) -> None:
        self._generation = state.generation
        #: The place of the last snapshot that was installed here.
        self.installed = state.installed
        #: Entries up to here were judged; after a start, those behind what is in files come again.
        self._judged = state.index
        #: Entries up to here are in files.
        self._released = state.released
        #: The last entry that came since the start, or is in files: what is behind it may not be in memory yet.
        self._reached = state.released
        #: Those without an effect among the entries that the log still has.
        self._skipped = list(state.skipped)
        #: Of the same: by entry, the places of those of its tablets that had an effect.
        self._partly = {index: list(places) for index, places in state.partly}
        self._requests = Requests(state.requests, state.arrived_requests)
        self._drops = Drops.of_words(state.drops)
        words = state.ownership
        self.ownership = Ownership(self._owned) if words is None else Ownership.of_words(words)
        #: (index, changes) of the last entries that changed the schema, and the entry behind which all are there.
        self._news: deque[tuple[int, Sequence[SchemaChange]]] = deque()
        self._news_from = state.index
        self.region = Region(
            self._folder_of(state.generation),
            self._options,
            self._disk,
            self._clock,
            state.tree(),
            state.index,
            self._cache,
            self._compactor,
        )
        self._shipments = Shipments(self.region.staging, self._disk)
        #: What pieces of files have brought since the state was saved because of them.
        self._shipped_bytes = 0
        #: Its files may show entries up to here, which the log has still to bring again.
        self._found = self.region.partitions.applied
        for arrival in self.ownership.arrivals.values():
            self._begin_with(arrival)
        self._told(self.news_since(-1))

    def _folder_of(self, generation: int) -> str:
        return os.path.join(self._folder, str(generation))

    def start(self, compact: Compact, sync: Callable[[], None]) -> None:
        """Begin: `compact(index)` frees the log up to an entry, `sync` makes it durable."""
        self._compact, self._sync = compact, sync
        self._start_region()

    def _start_region(self) -> None:
        self.region.start(self)
        self.region.start_compacting()

    # ------------------------------------------------------------------ entries

    def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """See `StateMachine.apply`. Waits while the MemTables hold too much."""
        with self._applying:
            self._wait_for_memory()
            return [self._apply(entry) for entry in entries]

    def _wait_for_memory(self) -> None:
        """Until there is room: an entry that is committed must be applied, however long the disk is full."""
        while not self.region.closed:
            try:
                self.region.wait_for_memory()
            except StorageError:
                self._wait_for_disk()
            else:
                return

    def _wait_for_disk(self) -> bool:
        """A while; False if the region was closed."""
        with self.region.lock:
            self.region.lock.wait(_FULL_DISK_SECONDS)
        return not self.region.closed

    def _apply(self, entry: Entry) -> Outcome:
        region = self.region
        if entry.kind is not EntryKind.DATA:
            with region.lock:
                region.partitions.pass_by(entry.index)
                self._reached = max(self._reached, entry.index)
                self._judged = max(self._judged, entry.index)
            return None
        command = decode_command(entry.data)
        if command.shipping is not None:
            return self._ship(entry.index, command.shipping)
        if command.mutation.loads:
            return self._load_shipped(entry.index, command)
        removes = any(isinstance(change, DeleteDatabase) for change in command.mutation.changes)
        if removes or isinstance(command.transfer, LetGo):
            with region.flusher.folders, region.lock:
                return self._apply_command(entry.index, command)
        with region.lock:
            return self._apply_command(entry.index, command)

    def _ship(self, index: int, shipping: Shipping) -> Outcome:
        """A file grows, or goes."""
        if isinstance(shipping, Piece):
            self._shipments.write(index, shipping, self._wait_for_disk)
        with self.region.lock:
            self.region.partitions.pass_by(index)
            is_new = index > self._judged
            self._reached, self._judged = max(self._reached, index), max(self._judged, index)
            if isinstance(shipping, Abandon):
                self._shipments.drop(shipping.name)
            elif self._shipments.fits(shipping):
                self._shipments.note(index, shipping, self._clock.monotonic_ns())
                self._shipped_bytes += len(shipping.data)
            elif is_new:
                return UserMistake("what comes before this piece of the file is not here: send it again", code=LOST)
        return None

    def _load_shipped(self, index: int, command: Command) -> Outcome:
        """A file that has come takes effect, if it is here and the entry is not refused."""
        (wanted,) = command.mutation.loads
        lost: UserMistake | None = None
        try:
            wanted = self._shipments.complete(wanted)
        except UserMistake as error:
            lost = error
        mutation = replace(command.mutation, loads=(wanted,))
        with self.region.lock:
            return self._apply_command(index, command._replace(mutation=mutation), lost)

    def _apply_command(self, index: int, command: Command, lost: UserMistake | None = None) -> Outcome:
        """Under the region's lock. `lost`: why a file cannot be loaded."""
        region = self.region
        mutation = command.mutation
        self._reached = max(self._reached, index)
        if command.transfer is not None:
            self._transfer(index, command.transfer, mutation.changes)
            return None
        if index <= self._judged:
            if index <= self._released or index in self._skipped or lost is not None:
                self._pass_by(index, mutation)  # a file that is lost in a replay has its place in a manifest, or had
            else:
                self._take_over(mutation)
                places = self._partly.get(index)
                if places is not None:
                    mutation = replace(mutation, tablets=[mutation.tablets[place] for place in places])
                self._take_effect(index, mutation)
                region.freeze_large()
            return None
        self._judged = index
        outcome: Outcome = None
        mutation = _looked_into(mutation)
        drop = drop_of(mutation.changes)
        repeated = drop is not None and command.drop <= self._drops.newest
        if self._requests.is_known(command.request, index):
            places = self._unseen(command.request, index, mutation.tablets)
            repeated = repeated or not (places or self._unseen_loads(command.request, index, mutation))
            if len(places) < len(mutation.tablets):
                mutation = replace(mutation, tablets=[mutation.tablets[place] for place in places])
                self._partly[index] = places
        if not repeated:
            try:
                self._check_slots(mutation, command.known)
                if lost is not None:
                    raise lost
                mutation = self._checked(mutation, command.drop)
            except UserMistake as error:
                outcome = error
        if repeated or outcome is not None:
            self._pass_by(index, mutation)
            self._skipped.append(index)
            return outcome
        self._take_over(mutation)
        for change in mutation.changes:
            if isinstance(change, DeleteDatabase):
                self.ownership.forget(change.path)
        told = [exact for change in mutation.changes for exact in self._exactly(change)]
        self._take_effect(index, mutation)
        region.freeze_large()
        self._requests.remember(command.request, index, self.ownership.opened)
        if drop is not None:
            self._drops.note(command.drop, drop)
        if told or drop is not None:
            self._note(index, told)
        return None

    def _take_effect(self, index: int, mutation: Mutation) -> None:
        """What has left the group is spared: who gets it carries out the entry, too."""
        ownership = self.ownership
        if ownership.fences:
            self.region.take_effect(index, mutation, lambda d, number: ownership.is_still(self.slot(d, number), index))
        else:
            self.region.take_effect(index, mutation)

    def _pass_by(self, index: int, mutation: Mutation) -> None:
        """An entry has no effect."""
        self.region.partitions.pass_by(index)
        for staged in mutation.loads:
            self._shipments.drop_of(staged)

    def _take_over(self, mutation: Mutation) -> None:
        """What is loaded is the region's from now on."""
        for staged in mutation.loads:
            self._shipments.load(staged)

    def stale_shipments(self, before_ns: int) -> list[str]:
        """Files that nobody has continued to send since that time of the clock."""
        with self.region.lock:
            return self._shipments.stale(before_ns)

    # ------------------------------------------------------------------ slots

    def slot(self, database: str, number: int) -> int:
        """The slot of a database's slice."""
        return _slot(database, number, len(self._owned))

    def _owns_schema(self, database: str) -> bool:
        """Whether the group keeps the schema of the database's series."""
        return self.ownership.owns(self.slot(database, 0))

    def _slots_of(self, placed: Placed) -> list[int]:
        """The slots of a tablet's rows; as a rule it is one."""
        frame, interval = placed.known, self._options.time_partition_interval
        assert frame is not None
        database = _database(frame.head.device, placed.depth)
        numbers = range(frame.span.start // interval, frame.span.end // interval + 1)
        return [self.slot(database, number) for number in numbers]

    def _unseen(self, request: Request, index: int, tablets: Sequence[Placed]) -> list[int]:
        """Places of the tablets that a repeated request brings for slots that have not had it."""
        covers, since = self._requests.covers, self.ownership.since
        return [
            place
            for place, placed in enumerate(tablets)
            if not all(covers(request, index, since(slot)) for slot in self._slots_of(placed))
        ]

    def _unseen_loads(self, request: Request, index: int, mutation: Mutation) -> bool:
        """Whether it brings a file for a slot that has not had it."""
        covers, since = self._requests.covers, self.ownership.since
        slots = [self.slot(staged.database, staged.slice) for staged in mutation.loads]
        return any(not covers(request, index, since(slot)) for slot in slots)

    def _has_schema(self, database: str) -> bool:
        """Likewise, or did until others could take it over."""
        return self.ownership.has(self.slot(database, 0))

    def _check_slots(self, mutation: Mutation, known: Known) -> None:
        """Raise UserMistake (MOVED) if the entry is another group's, or passes by what is on its way."""
        made = [c.path for c in mutation.changes if isinstance(c, CreateDatabase)]
        devices = [c.device for c in mutation.changes if isinstance(c, CreateSeries | AlterSeries)]
        known_ones = [self.region.schema.database_of(device) for device in devices]
        slots = {self.slot(d, 0) for d in (*made, *known_ones) if d is not None}
        for placed in mutation.tablets:
            slots.update(self._slots_of(placed))
        slots.update(self.slot(staged.database, staged.slice) for staged in mutation.loads)
        self.ownership.check(sorted(slots))
        concerns_all = mutation.deletions or any(isinstance(c, OF_ALL_GROUPS) for c in mutation.changes)
        if concerns_all and drop_of(mutation.changes) is None:  # drops wait for moves, and moves for drops
            self.ownership.check_epoch(*known)

    def _transfer(self, index: int, transfer: Transfer, changes: Sequence[SchemaChange]) -> None:
        """Slots come or go. Under the region's lock; in a replay, too."""
        region = self.region
        region.partitions.pass_by(index)
        is_new, self._judged = index > self._judged, max(self._judged, index)
        match transfer:
            case Fence() if is_new:
                self.ownership.fence(transfer, index)
            case Open(opened, requests, drops) if is_new and self.ownership.open(replace(opened, entry=index)):
                arrival = self.ownership.arrivals[opened.epoch]
                self._requests.take_in(arrival.epoch, index, requests)
                self._drops.take_in(Drops.of_words(drops))
                self._bring(index, changes, sorted({database for database, _ in arrival.partitions}))
                self._begin_with(arrival)
                came = set(arrival.slots)  # of these it is this group that speaks now
                self._note(index, [c for c in self._all_schema() if self._goes_along(c, lambda slot: slot in came)])
            case Bring(epoch) if is_new and epoch > self.ownership.opened:
                self._bring(index, changes, ())
            case Settle(epoch):
                self.ownership.settle(epoch)
            case LetGo(epoch):
                self.ownership.leave(epoch)
                gone = [d for d in region.schema.databases() if not self.ownership.has(self.slot(d, 0))]
                if is_new:
                    region.take_effect(index, Mutation([DeleteSeries(f"{database}.**") for database in gone]))
                region.let_go(lambda database, number: not self.ownership.has(self.slot(database, number)), index)

    def _bring(self, index: int, changes: Sequence[SchemaChange], databases: Sequence[str]) -> None:
        """Take in the schema of slots that come; some of it may be here, since it is sent again."""
        wanted = [replace(c, if_missing=True) if isinstance(c, CreateSeries) else c for c in changes]
        self.region.take_effect(index, Mutation(self._needed(wanted, databases)))

    def _all_schema(self) -> list[SchemaChange]:
        return [decode_change(line) for line in self.region.schema.dump().splitlines()]

    def _begin_with(self, arrival: Arrival) -> None:
        """What lies elsewhere is read there, until `arrive`."""
        for database, number in arrival.partitions:
            if self.region.schema.is_database(database):
                underlay = self._underlay(arrival, database, number)
                self.region.begin_with(database, number, arrival.epoch, arrival.entry, underlay)

    def pin(self, known: Known | None = None) -> tuple[Region, Pinned, int]:
        """The region, what can be read of it now, and the entry behind which none shows. Unpin the region.

        `known`: the table of whoever reads; None: nothing has ever moved. Raises UserMistake (MOVED) if by that table
        slots are sought here that are gone, or not here yet.
        """
        region = self.region
        with region.lock:
            if known is not None and known.inbound == LEFT:
                self._check_left(known.epoch)
            elif known is not None:
                self.ownership.check_view(*known)
            pinned = region.pin()
            if known is not None and self.ownership.has_moved:
                pinned = self._shown(pinned, known)
            return region, pinned, max(region.partitions.applied, self._found)

    def has_heard(self, known: Known) -> bool:
        """Whether the replica knows of the slots that came to its group, as far as such a table does."""
        with self.region.lock:
            return known.inbound == LEFT or known.inbound <= self.ownership.opened

    def _shown(self, pinned: Pinned, known: Known) -> Pinned:
        """What a reader with that table finds here: the rest is another group's. The same value for the same."""
        at = (*known, self.ownership.fenced, self.ownership.opened, self.ownership.let_go)
        before, then, found = self._filtered
        if before is pinned and then == at:
            return found
        found = {
            database: tuple(s for s in snapshots if self.ownership.shows(self.slot(database, s.slice), *known))
            for database, snapshots in pinned.items()
        }
        self._filtered = (pinned, at, found)
        return found

    def describe(self, epoch: int) -> tuple[int, Open, list[SchemaChange]]:
        """What the group must know that gets the slots that a move took away here, and the entry that did so.

        Of the arrival only the partitions are filled in. Raises UserMistake (MOVED) if that entry is not reached here.
        """
        region = self.region
        with region.lock:
            self._check_left(epoch)
            fence = self.ownership.fences[epoch]
            keys = sorted(p.key for p in region.partitions if self.ownership.shows(self.slot(*p.key), epoch, LEFT))
            changes = self._all_schema()
            requests = tuple(self._requests.newest())
            drops = self._drops.words()

        def is_left(slot: int) -> bool:
            return self.ownership.shows(slot, epoch, LEFT)

        changes = [part for c in changes if self._goes_along(c, is_left) for part in _parts_of(c)]
        arrival = Arrival(epoch, 0, 0, GroupId(0), 0, (), (), tuple(keys))
        return fence, Open(arrival, requests, drops), changes

    def capture_left(self, epoch: int) -> bytes:
        """A capture of the slots that a move took away here. Raises what `capture` does, and UserMistake (MOVED)."""
        with self.region.lock:
            self._check_left(epoch)
        return self.capture(lambda database, number: self.ownership.shows(self.slot(database, number), epoch, LEFT))

    def has_left(self, epoch: int) -> bool:
        """Whether slots that a move took away are still here, and nothing of them changes any more."""
        with self.region.lock:
            return self.ownership.has_left(epoch) and self._has_reached(epoch)

    def _has_reached(self, epoch: int) -> bool:
        """Whether all is here that a move took away: who has started again has it when the log has brought it."""
        return self._reached >= self.ownership.fences[epoch]

    def _check_left(self, epoch: int) -> None:
        """Raise UserMistake (MOVED) unless slots that a move took away are still here, and all of them again."""
        self.ownership.check_view(epoch, LEFT)
        if not self._has_reached(epoch):
            raise UserMistake("this replica has just started: ask another one, or again", code=MOVED)

    def arrivals(self) -> list[Arrival]:
        """What came here, and is not settled."""
        with self._applying, self.region.lock:  # else a snapshot might be half in its place
            return list(self.ownership.arrivals.values())

    def is_arriving(self, arrival: Arrival) -> bool:
        """Whether something of it is still read elsewhere."""
        with self._applying, self.region.lock:
            return any(p.underlay is not None and p.key in set(arrival.partitions) for p in self.region.partitions)

    def _goes_along(self, change: SchemaChange, goes: Callable[[int], bool]) -> bool:
        """Whether a group that gets slots must know: series of databases that it will own, and what all groups know."""
        database: str | None = None
        if isinstance(change, CreateDatabase):
            database = change.path
        elif isinstance(change, CreateSeries | AlterSeries):
            database = self.region.schema.database_of(change.device)
        if database is not None:
            return goes(self.slot(database, 0))
        return isinstance(change, OF_ALL_GROUPS)

    def _exactly(self, change: SchemaChange) -> list[SchemaChange]:
        """A change as others are told of it: a pattern means the series here, not what it matches elsewhere.

        Nor those that have left the group: whoever has them now tells of their end, and of what is made anew.
        """
        if isinstance(change, DeleteDatabase):
            return [change] if self._owns_schema(change.path) else []
        if not isinstance(change, DeleteSeries):
            return [change] if self._may_tell(change) else []
        found = self.region.schema.match_series(parse_pattern(change.pattern))
        return [DeleteSeries(f"{d.path}.{series.measurement}") for d, series in found if self._owns_schema(d.database)]

    def _note(self, index: int, changes: Sequence[SchemaChange]) -> None:
        self._news.append((index, changes))
        if len(self._news) > _NEWS_KEPT:
            self._news_from = self._news.popleft()[0]
        self._told(self._news_of(index, changes, whole=False))

    def news_since(self, known: int) -> SchemaNews:
        """What became of the schema behind entry `known`. Any thread."""
        with self.region.lock:
            index = self._judged  # files may show later entries, which the log has still to bring again
            if known >= self._news_from:
                changes = [c for at, found in self._news if at > known for c in found]
                return self._news_of(index, changes, whole=False)
            # A region knows every database that it has points of; of their series only some groups may speak.
            return self._news_of(index, [c for c in self._all_schema() if self._may_tell(c)], whole=True)

    def _news_of(self, index: int, changes: Sequence[SchemaChange], *, whole: bool) -> SchemaNews:
        made = [change.path for change in changes if isinstance(change, CreateDatabase)]
        since = {database: self.ownership.since(self.slot(database, 0)) for database in made}
        return SchemaNews(index, whole, tuple(changes), self._drops.newest, since)

    def _may_tell(self, change: SchemaChange) -> bool:
        return not isinstance(change, CreateDatabase) or self._has_schema(change.path)

    def _checked(self, mutation: Mutation, seen: int) -> Mutation:
        """The mutation as it is carried out: databases known. Raises UserMistake."""
        schema, tablets = self.region.schema, mutation.tablets
        if seen < self._drops.newest:
            self._check_seen(seen, mutation)
        databases = [_database(p.known.head.device, p.depth) for p in tablets if p.known is not None]
        loaded = [staged.database for staged in mutation.loads]
        changes = self._needed(mutation.changes, [*databases, *loaded])
        if changes:
            schema = schema.rehearse(changes, [p.known.head.device for p in tablets if p.known is not None])
        for placed, database in zip(tablets, databases, strict=True):
            if placed.known is not None and self._owns_schema(database):
                self._fitting.depth(placed.known.head, schema)
        return Mutation(changes, mutation.deletions, tablets, mutation.loads)

    def _check_seen(self, seen: int, mutation: Mutation) -> None:
        devices = {p.known.head.device for p in mutation.tablets if p.known is not None}
        devices |= {change.device for change in mutation.changes if isinstance(change, CreateSeries | AlterSeries)}
        devices |= {d for staged in mutation.loads if staged.known is not None for d in staged.known.devices}
        if self._drops.overtake(seen, devices):
            raise UserMistake("series were dropped since the write was prepared: look at them again", code=OVERTAKEN)

    def _needed(self, changes: Sequence[SchemaChange], databases: Sequence[str]) -> list[SchemaChange]:
        """The changes without what is here or gone already, and with the databases that the tablets lie in."""
        known = self.region.schema
        needed: list[SchemaChange] = []
        created = set()
        for wanted in changes:
            change = wanted
            if isinstance(change, CreateSeries) and change.if_missing:
                device = known.device(change.device)
                left = tuple(s for s in change.series if device is None or s.measurement not in device.series)
                if not left:
                    continue
                change = CreateSeries(change.device, change.aligned, left)
            if isinstance(change, CreateDatabase):
                if known.is_database(change.path):
                    continue
                created.add(change.path)
            if isinstance(change, DeleteDatabase) and not known.is_database(change.path):
                continue
            needed.append(change)
        missing = {d for d in databases if not known.is_database(d)} - created
        return [*(CreateDatabase(database) for database in sorted(missing)), *needed]

    # ------------------------------------------------------------------ the log, for the region's flusher

    def sync_due(self) -> None:
        """See `flusher.Journal`."""
        self._sync()

    def release(self, first: int) -> None:
        """See `flusher.Journal`."""
        if first - 1 - self._released >= _RELEASE_ENTRIES or self._shipped_bytes >= _RELEASE_SHIPPED_BYTES:
            self._shipped_bytes = 0
            self.save(first)

    def save(self, first: int | None = None) -> None:
        """Write the state, and free the log before entry `first`: by default, whatever no partition needs."""
        with self._saving:
            state = self._state(first)
            if state.released > self._released:
                save_state(self._disk, self._path, state)
                self._released = state.released
                self._compact(state.released)

    def _state(self, first: int | None) -> GroupState:
        """As of now. What a log still has to bring, no partition can say that it needs."""
        with self.region.lock:
            needed = self.region.flusher.first_needed() if first is None else first
            waiting = {loaded.staged.name for p in self.region.partitions for loaded in p.loaded}
            shipped = self._shipments.first_needed(waiting)
            needed = min(needed, self._reached + 1, self._reached + 1 if shipped is None else shipped)
            self._skipped = [index for index in self._skipped if index >= needed]
            self._partly = {index: places for index, places in self._partly.items() if index >= needed}
            return GroupState(
                index=self._judged,
                released=needed - 1,
                skipped=tuple(self._skipped),
                partly=tuple(self._partly.items()),
                requests=tuple(self._requests.dump()),
                arrived_requests=tuple(self._requests.dump_arrived()),
                drops=self._drops.words(),
                generation=self._generation,
                installed=self.installed,
                schema=self.region.schema.dump(),
                ownership=self.ownership.words(),
            )

    # ------------------------------------------------------------------ snapshots

    def take_snapshot(self) -> tuple[int, bytes]:
        """See `StateMachine.take_snapshot`: everything is flushed, so that the files say it all."""
        self.region.flush()
        return self._capture(everything)

    def forget_snapshot(self, token: bytes) -> None:
        """See `StateMachine.forget_snapshot`."""
        self._shelf.release(token)

    def capture(self, chosen: Chosen = everything) -> bytes:
        """A capture of exactly one index, on this group's shelf; entries wait while what came meanwhile is flushed.

        Raises DiskFull, StoreClosed, CorruptFile.
        """
        self.region.flush_chosen(chosen)
        with self._applying:
            self.region.flush_chosen(chosen)
            return self._capture(chosen)[1]

    def _capture(self, chosen: Chosen) -> tuple[int, bytes]:
        region = self.region
        with region.flusher.folders:
            with region.lock:
                state = self._state(None)
                taken = region.capture(chosen)
            note = encode_state(replace(state, schema=b""))
            return state.released, self._shelf.put(replace(taken, note=note))

    def stage(self, sender: NodeId, snapshot: Snapshot) -> None:
        """See `StateMachine.stage`."""
        self._staged = None
        folder = os.path.join(self._folder, _STAGING)
        self._staged = pull_snapshot(partial(self._ask, sender), snapshot.token, folder, self._disk)

    def install(self, snapshot: Snapshot) -> None:
        """See `StateMachine.install`. Until the state file is replaced, the old region is in effect."""
        if self.installed is not None and self.installed.index >= snapshot.position.index:
            return
        assert self._staged is not None
        assert self._staged.released == snapshot.position.index
        with self._applying, self._saving:
            state = replace(self._staged, generation=self._generation + 1, installed=snapshot.position)
            old, old_folder = self.region, self._folder_of(self._generation)
            staging = os.path.join(self._folder, _STAGING)
            if self._disk.exists(staging):  # else there was no room for the state the last time
                self._disk.replace(staging, self._folder_of(state.generation))
                self._disk.sync_folder(self._folder)
            save_state(self._disk, self._path, state)
            self._staged = None
            if old.refuse_all():
                old.stop()
            self._load(state)
            self._start_region()
            old.keep_for_views()
            self._disk.remove_tree(old_folder)

    def close(self) -> None:
        """End; what is in memory stays in the log. Idempotent."""
        if self.region.refuse_all():
            self.region.stop()


_slot = lru_cache(_CACHED_DATABASES)(slot_of)


def _looked_into(mutation: Mutation) -> Mutation:
    """With the heads of its tablets read, once for all who look at them."""
    if not mutation.tablets:
        return mutation
    return replace(mutation, tablets=[Placed(p.depth, p.frame, TabletFrame(p.frame)) for p in mutation.tablets])


def _parts_of(change: SchemaChange) -> list[SchemaChange]:
    """The change in parts that do not take much of an entry."""
    if not isinstance(change, CreateSeries):
        return [change]
    places = range(0, len(change.series), _PART_SERIES)
    return [replace(change, series=change.series[place : place + _PART_SERIES]) for place in places]


@lru_cache(_CACHED_DATABASES)
def _database(device: str, depth: int) -> str:
    return join_nodes(split_path(device)[:depth])

"""The state machine of a data group: applies the entries of its log to a region of storage.

    entry i    fences, opens, releases slots                   see `slot_transfer`
               brings a piece of a file to load                see `log_shipped_files`
               loads a file that is not complete here          no effect, refused (2027): see `log_shipped_files`
               is for slots that the group does not own        no effect, refused: see `entry_validation`
               otherwise                                       schema tree, tombstones, memtables; outcome None

An entry's effect depends on the entries before it and nothing else, so all members agree. This also holds after a
restart, when the entries up to `state.index` are replayed (`state_file`): the replay does not validate them a second
time.

The schema of a database's series is stored by the group that owns the database's first slice. Only that group checks
tablets against the schema. Other groups trust the types that a tablet states, since its coordinator has asked the owner
of the schema.

`apply` is called by one thread. The group's local state (`replica`) is thread-safe. The region's flusher calls
`release`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from saros_cluster.data.command import Command, decode_command
from saros_cluster.data.drops import drop_of
from saros_cluster.data.entry_validation import EntryValidator, ValidatedEntry
from saros_cluster.data.log_shipped_files import LOST, Abandon, Piece, ShippedFiles, Shipping
from saros_cluster.data.ownership import LEFT, Ownership, Release
from saros_cluster.data.replica import OpenMigrationSource, Replica
from saros_cluster.data.schema_feed import Told
from saros_cluster.data.slot_transfer import move, remove_left
from saros_cluster.data.snapshots import pull_snapshot
from saros_cluster.data.state_file import GroupState, encode_state, load_state, save_state
from saros_cluster.multiraft.state_machine import Outcome
from saros_cluster.placement.ring import NodeId
from saros_cluster.raft.messages import Entry, EntryKind, GroupId, Snapshot
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.cache.chunk_cache import ChunkCache
from saros_storage.checkpoint.registry import CAPTURED_NS, CheckpointRegistry
from saros_storage.compaction.compactor import Compactor
from saros_storage.flush.pacer import Pacer
from saros_storage.folder.layout import confirm
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import FULL_ERRNOS, Disk
from saros_storage.mutation.mutation import Mutation
from saros_storage.region import Region
from saros_storage.scan.snapshot import Chosen, everything
from saros_storage.schema import DeleteDatabase

#: The log is freed after a flush only if at least this many entries can be freed, since the state is written each time.
_RELEASE_ENTRIES = 2_000
#: The log is also freed if pieces of files with this total size were applied since it was last freed.
_RELEASE_SHIPPED_BYTES = 16 << 20
#: Longest time between two attempts to write while the disk is full.
_FULL_DISK_SECONDS = 1.0
#: The folder into which a snapshot is fetched.
_STAGING = "staging"
#: Lease of an offered snapshot. A member that does not fetch the snapshot, or stops fetching, is offered another one
#: later.
_OFFERED_NS = 30_000_000_000
Compact = Callable[[int], None]


class RegionMachine:
    """The state machine of a data group on this node. Implements `StateMachine` and the region's `Journal`."""

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
        underlay: OpenMigrationSource,
        on_schema_delta: Told,
        shelf: CheckpointRegistry,
        ask: Callable[[NodeId, str, bytes], bytes],
        compactor: Compactor | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        """Load the region below `folder`, in the state that the file at `state_path` holds.

        `owned`: bool[slots], the slots that the group owns at its start. `underlay` opens a source that reads data at
        its former group until the data has arrived here. `on_schema_delta` is called with each change of the schema.
        Raises CorruptFile.
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
        self._on_schema_delta = on_schema_delta
        self._shelf = shelf
        self._ask = ask
        self._compactor = compactor
        self._pacer = pacer
        self._compact: Compact = lambda _: None
        #: The last entry that the log had at the start, or None once the entry has been applied or replaced.
        self._last: Entry | None = None
        self._sync: Callable[[], None] = lambda: None
        self._saving = threading.Lock()
        #: Held while entries are applied, and while the region is replaced.
        self._applying = threading.Lock()
        #: The state of the snapshot that `stage` fetched.
        self._staged: GroupState | None = None
        if disk.exists(state_path):
            confirm(disk, state_path)
        self._load(load_state(disk, state_path))
        for name in disk.list(folder):
            if name != str(self._generation):
                disk.remove_tree(os.path.join(folder, name))

    def _load(self, state: GroupState) -> None:
        self._generation = state.generation
        words = state.ownership
        ownership = Ownership(self._owned) if words is None else Ownership.from_json(words)
        region = Region(
            self._folder_of(state.generation),
            self._options,
            self._disk,
            self._clock,
            state.tree(),
            state.index,
            self._cache,
            self._compactor,
            pacer=self._pacer,
        )
        shipments = ShippedFiles(region.staging, self._disk)
        #: Bytes of file pieces that were applied since `release` last caused the state to be saved.
        self._shipped_bytes = 0
        #: Other threads read this at any time. It is replaced when a snapshot is installed.
        self.replica = Replica(state, region, ownership, shipments, self._underlay, self._on_schema_delta)
        self._validator = EntryValidator(self.replica)
        self._on_schema_delta(self.replica.delta_since(-1))

    @property
    def region(self) -> Region:
        """The current region."""
        return self.replica.region

    def _folder_of(self, generation: int) -> str:
        return os.path.join(self._folder, str(generation))

    def start(self, compact: Compact, sync: Callable[[], None], last: Entry | None = None) -> None:
        """Start. `compact(index)` frees the log up to an entry, `sync` makes it durable, `last` is its last entry."""
        self._compact, self._sync = compact, sync
        installed = self.replica.installed
        if last is not None and (installed is None or installed.index < last.index):
            self._last = last
        self._start_region()

    def _start_region(self) -> None:
        self.region.start(self)
        if self._last is None:
            self.region.enable_expiry()
        self.region.start_compacting()

    # ------------------------------------------------------------------ entries

    def apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        """Implement `StateMachine.apply`. Block while the memtables use too much memory."""
        with self._applying:
            self._wait_for_memory()
            outcomes = [self._apply(entry) for entry in entries]
            last = self._last
            # Entries that were in the log at the start, but not committed, may have been replaced by a newer leader's
            # entries.
            if last is not None and entries and (entries[-1].index >= last.index or entries[-1].term > last.term):
                self._last = None
                self.region.enable_expiry()
            return outcomes

    def _wait_for_memory(self) -> None:
        """Block until the memtables have room.

        A committed entry must be applied, so this waits as long as the disk is full.
        """
        while not self.region.closed:
            try:
                self.region.wait_for_memory()
            except StorageError:
                self._wait_for_disk()
            else:
                return

    def _wait_for_disk(self) -> bool:
        """Wait before the next attempt. Return False if the region was closed."""
        with self.region.lock:
            self.region.lock.wait(_FULL_DISK_SECONDS)
        return not self.region.closed

    def _apply(self, entry: Entry) -> Outcome:
        region = self.region
        if entry.kind is not EntryKind.DATA:
            with region.lock:
                self.replica.advance(entry.index)
            return None
        command = decode_command(entry.data)
        if command.shipping is not None:
            return self._ship(entry.index, command.shipping)
        if command.mutation.loads:
            return self._load_shipped(entry.index, command)
        if isinstance(command.transfer, Release):
            return self._release(entry.index, command)
        if any(isinstance(change, DeleteDatabase) for change in command.mutation.changes):
            with region.flusher.folders, region.lock:
                return self._apply_command(entry.index, command)
        with region.lock:
            return self._apply_command(entry.index, command)

    def _ship(self, index: int, shipping: Shipping) -> Outcome:
        """Add a piece to a shipped file, or remove a shipped file."""
        replica, shipments = self.replica, self.replica.shipments
        if isinstance(shipping, Piece):
            shipments.write(index, shipping, self._wait_for_disk)
        with replica.region.lock:
            is_new = replica.advance(index)
            if isinstance(shipping, Abandon):
                shipments.drop(shipping.name)
            elif shipments.fits(shipping):
                shipments.record(index, shipping, self._clock.monotonic_ns())
                self._shipped_bytes += len(shipping.data)
            elif is_new:
                return UserMistake("the pieces before this one are missing; send the file again", code=LOST)
        return None

    def _release(self, index: int, command: Command) -> Outcome:
        """Remove the data of slots that are complete at their new group.

        The state file records the removal before any file is removed. Otherwise a restarted replica would return an
        empty result for these slots to a reader with an older table.
        """
        replica = self.replica
        with replica.region.lock:
            is_new = index > replica.validated_index
            replica.removing = index
            outcome = self._apply_command(index, command)
        if is_new:
            self._save_soon()
        with replica.region.flusher.folders, replica.region.lock:
            remove_left(replica, index)
            replica.removing = None
        return outcome

    def _save_soon(self) -> None:
        """Write the state, waiting while the disk is full."""
        while True:
            try:
                with self._saving:
                    state = self.replica.state(None)
                    self._write(replace(state, released=max(state.released, self.replica.released)))
            except OSError as error:
                if error.errno not in FULL_ERRNOS or not self._wait_for_disk():
                    raise
            else:
                return

    def _load_shipped(self, index: int, command: Command) -> Outcome:
        """Load a shipped file if all of it is here and the entry is not refused."""
        (wanted,) = command.mutation.loads
        lost: UserMistake | None = None
        try:
            wanted = self.replica.shipments.complete(wanted)
        except UserMistake as error:
            lost = error
        mutation = replace(command.mutation, loads=(wanted,))
        with self.region.lock:
            return self._apply_command(index, command._replace(mutation=mutation), lost)

    def _apply_command(self, index: int, command: Command, lost: UserMistake | None = None) -> Outcome:
        """Apply an entry, under the region's lock.

        `lost` is the reason why the entry's file cannot be loaded, or None.
        """
        replica = self.replica
        if command.transfer is not None:
            move(replica, index, command.transfer, command.mutation.changes)
            return None
        replica.reached = max(replica.reached, index)
        if index <= replica.validated_index:
            self._replay(index, command.mutation, is_lost=lost is not None)
            return None
        replica.validated_index = index
        try:
            effect = self._validator.validate(index, command, lost)
        except UserMistake as error:
            refused: Outcome = error
        else:
            if effect is not None:
                if effect.places is not None:
                    replica.partly[index] = effect.places
                if effect.spared:
                    replica.spared[index] = effect.spared
                self._carry_out(index, command, effect)
                return None
            refused = None
        replica.skip(index, command.mutation)
        replica.skipped.append(index)
        return refused

    def _replay(self, index: int, mutation: Mutation, *, is_lost: bool) -> None:
        """Apply an entry that was validated before the restart."""
        replica = self.replica
        if index <= replica.released or index in replica.skipped or is_lost:
            replica.skip(index, mutation)  # if its file is lost, the file was loaded before the restart
            return
        places = replica.partly.get(index)
        if places is not None:
            mutation = replace(mutation, tablets=[mutation.tablets[place] for place in places])
        replica.take_effect(index, mutation, replica.spared.get(index, frozenset()))

    def _carry_out(self, index: int, command: Command, effect: ValidatedEntry) -> None:
        replica, mutation = self.replica, effect.mutation
        for change in mutation.changes:
            if isinstance(change, DeleteDatabase):
                replica.ownership.forget(change.path)
        schema = replica.region.schema
        told = [exact for change in mutation.changes for exact in replica.schema_feed.resolve(change, schema)]
        replica.take_effect(index, mutation, effect.spared)
        replica.requests.remember(command.request, index, command.known.inbound)
        drop = drop_of(command.mutation.changes)  # recorded even if the drop reaches nothing in this group
        if drop is not None:
            replica.drops.record(command.drop, drop)
        if told or drop is not None:
            replica.schema_feed.record(index, told)

    # ------------------------------------------------------------------ the log, for the region's flusher

    def sync_due(self) -> None:
        """Implement `flusher.Journal`."""
        self._sync()

    def release(self, first: int) -> None:
        """Implement `flusher.Journal`: save the state and free the log, if that frees enough of the log."""
        if first - 1 - self.replica.released >= _RELEASE_ENTRIES or self._shipped_bytes >= _RELEASE_SHIPPED_BYTES:
            self._shipped_bytes = 0
            self.save(first)

    def save(self, first: int | None = None) -> None:
        """Write the state, and free the log before entry `first`, by default the first entry that is still needed."""
        with self._saving:
            state = self.replica.state(first)
            if state.released > self.replica.released:
                self._write(state)

    def _write(self, state: GroupState) -> None:
        """Write the state and free the log. The caller holds `_saving`."""
        save_state(self._disk, self._path, state)
        self.replica.released = state.released
        self._compact(state.released)

    # ------------------------------------------------------------------ snapshots

    def take_snapshot(self) -> tuple[int, bytes]:
        """Implement `StateMachine.take_snapshot`. Flush first, so that the files contain everything."""
        self.region.flush(gently=True)
        return self._capture(everything, _OFFERED_NS)

    def forget_snapshot(self, token: bytes) -> None:
        """Implement `StateMachine.forget_snapshot`."""
        self._shelf.release(token)

    def capture(self, chosen: Chosen = everything) -> bytes:
        """Capture the chosen partitions as of one entry.

        Put the capture on the shelf, where this group stores its captures, and return the capture's id. Flush twice:
        first while entries are being applied, then the remainder while no entry is applied. Raises DiskFull,
        StoreClosed, CorruptFile.
        """
        self.region.flush_chosen(chosen, gently=True)
        with self._applying:
            self.region.flush_chosen(chosen)
            return self._capture(chosen, CAPTURED_NS)[1]

    def capture_left(self, epoch: int) -> bytes:
        """Capture the slots that a move took away. Raises what `capture` raises, and UserMistake (MOVED)."""
        replica = self.replica
        replica.check_left(epoch)
        shows, slot = replica.ownership.shows, replica.ownership.slot
        return self.capture(lambda database, number: shows(slot(database, number), epoch, LEFT))

    def _capture(self, chosen: Chosen, lease_ns: int) -> tuple[int, bytes]:
        region = self.region
        with region.flusher.folders:
            with region.lock:
                state = self.replica.state(None)
                taken = region.capture(chosen)
            note = encode_state(replace(state, schema=b""))
            return state.released, self._shelf.put(replace(taken, note=note), lease_ns=lease_ns)

    def stage(self, sender: NodeId, snapshot: Snapshot) -> None:
        """Implement `StateMachine.stage`."""
        self._staged = None
        folder = os.path.join(self._folder, _STAGING)
        self._staged = pull_snapshot(partial(self._ask, sender), snapshot.token, folder, self._disk)

    def install(self, snapshot: Snapshot) -> None:
        """Implement `StateMachine.install`. Until the state file is replaced, the old region is in effect."""
        installed = self.replica.installed
        if installed is not None and installed.index >= snapshot.position.index:
            return
        assert self._staged is not None
        assert self._staged.released == snapshot.position.index
        with self._applying:
            state = replace(self._staged, generation=self._generation + 1, installed=snapshot.position)
            old, old_folder = self.region, self._folder_of(self._generation)
            staging = os.path.join(self._folder, _STAGING)
            if self._disk.exists(staging):  # if not, an earlier attempt moved it but could not save the state
                self._disk.replace(staging, self._folder_of(state.generation))
                self._disk.sync_folder(self._folder)
            with self._saving:
                save_state(self._disk, self._path, state)
                self._staged = None
                is_to_stop = old.refuse_all()
                self._load(state)
                self._last = None
                self._start_region()
            if is_to_stop:
                old.stop()  # `stop` waits for the flush in progress, which may wait for `_saving`
            old.keep_for_views()
            self._disk.remove_tree(old_folder)

    def close(self) -> None:
        """Stop the region. Unflushed data stays in the log. Idempotent."""
        if self.region.refuse_all():
            self.region.stop()

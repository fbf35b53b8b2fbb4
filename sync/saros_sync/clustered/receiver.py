"""The receiver at a node of a cluster: handles senders' requests and commits rounds. A sender may use any node.

    begin     the contents that no node has are requested: a round that began at another node continues here
    chunk     is stored at this node (`receiver.incoming`); meanwhile the sender's replicas fetch the contents
    commit    1  a majority of each replica set has the whole round, durable and checked              (`replica_store`)
              2  devices without an owner are created, marked as the sender's                         (`schema`)
              3  the round is written to the notes of the meta group: the commit point                (`catalog`)
              4  the schema is adapted to the sender's: devices that the sender dropped are removed

The commit point is a single entry in one log, no matter how many groups there are: a query whose catalog includes that
entry reads the whole round, and a query with an earlier catalog reads the previous round. If the sender repeats the
round, here or at another node, the round counts as committed. A commit that is interrupted before step 3 has no effect.
A commit that is interrupted after step 3 is completed by the sender's next request or by the leader of the meta group.
Step 3 is refused if the topology has begun to change since step 1, because the new replicas must have the round too.

Thread-safe: a node serves one request of a sender at a time. If several nodes commit, the notes accept only one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import msgspec
from msgspec.structs import replace

from saros_cluster.meta.metadata_kv import CHANGED, Notes
from saros_storage.base.clock import Clock
from saros_storage.base.errors import StorageError, UserMistake
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.schema import DeviceSchema
from saros_sync.clustered import schema
from saros_sync.clustered.catalog import CatalogVersion, ClusterCatalog, encode_entry, key_of
from saros_sync.clustered.content_store import Contents, names_of
from saros_sync.clustered.replica_sets import ReplicaSets, all_replicas, has_quorum
from saros_sync.clustered.replica_store import ReplicaStore
from saros_sync.errors import BeginAgain, Unreachable
from saros_sync.receiver.catalog import Catalog, SenderEntry, entry_after, transferred
from saros_sync.receiver.checking import Executor
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.mirror import devices_of_schema
from saros_sync.receiver.ownership import OwnershipDecision, claims
from saros_sync.receiver.request_checks import (
    Requester,
    SenderLocks,
    check_room,
    check_speaker,
    disk_errors,
    printable,
    require_in_progress,
)
from saros_sync.round import Content, Round, decode_round
from saros_sync.transport import BeginReply, MissingContent, RoundStatus

logger = logging.getLogger(__name__)

#: The time for which a commit waits for the sender's replicas. After this time, the commit fails and the sender repeats
#: the request.
_HOLD_SECONDS = 60.0
#: The time for which a commit waits for the remaining replicas once a majority has the round, so that usually all
#: replicas have it.
_OTHERS_SECONDS = 1.0
_POLL_SECONDS = 0.05
#: Maximum number of attempts to change the notes. An attempt fails if another sender commits at the same time.
_ATTEMPTS_MAX = 50
#: After this many bytes have arrived, or become complete, the replicas are told to fetch them. They fetch the remaining
#: bytes at the commit.
AHEAD_BYTES = 8 << 20
#: The meta group's leader waits this long before it completes a commit, which another node may be completing.
_UNFINISHED_NS = 5_000_000_000


class Cluster(schema.Cluster, Protocol):
    """The part of the cluster's database that the receiver uses. Methods raise StorageError."""

    @property
    def options(self) -> StoreOptions:
        """The database's options. The receiver reads the time unit."""
        ...

    def wait_notes_visible(self) -> Notes:
        """Wait until this node has all acknowledged notes, and return them."""
        ...

    def put_notes(self, version: int, texts: Mapping[str, str]) -> None:
        """Write notes. Raises UserMistake (`CHANGED`) if the notes have changed since `version`."""
        ...


class _SchemaUpdate(msgspec.Struct):
    """The last update of the schema for a sender, completed or pending. This node learned of it at `since_ns`."""

    document: str
    devices: frozenset[str]
    since_ns: int
    done: bool


class ClusterReceiver:
    """The receiver at one node of a cluster."""

    def __init__(
        self,
        contents: Contents,
        disk: Disk,
        clock: Clock,
        ledger: ClusterCatalog,
        replica_store: ReplicaStore,
        cluster: Cluster,
        replica_sets: Callable[[str], ReplicaSets],
        chores: Executor,
        sleep: Callable[[float], None] = time.sleep,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        """Recover the rounds that were arriving here before. Raises CorruptFile, OSError."""
        self._contents = contents
        self._disk = disk
        self._clock = clock
        self._ledger = ledger
        self._replica_store = replica_store
        self._cluster = cluster
        self._replica_sets = replica_sets
        self._chores = chores
        self._sleep = sleep
        self._ahead_bytes = ahead_bytes
        self._locks = SenderLocks()
        #: Rounds that are arriving at this node, or that have arrived and are not removed yet.
        self._incoming = {sender: self._open(sender) for sender in contents.senders_arriving()}
        self._given: dict[str, _SchemaUpdate] = {}
        #: For each sender, the content of a round's document, and the number of the round's files and bytes.
        self._sizes: dict[str, tuple[Content, tuple[int, int]]] = {}

    def _open(self, sender: str) -> Incoming:
        return Incoming(self._contents.arriving(sender), self._disk, self._chores)

    @property
    def catalog(self) -> Catalog:
        """All senders and their rounds, as far as this node knows."""
        return self._ledger.now.catalog

    def close(self) -> None:
        """Close all files. The arrived contents stay."""
        for incoming in list(self._incoming.values()):
            incoming.close()
        self._chores.close()

    # ------------------------------------------------------------------ requests of senders

    def begin(self, speaker: Requester, sender: str, name: str, number: int, document: Content) -> BeginReply:
        """See `Transport.begin`. Raises RoundRefused, DiskFull, StorageError."""
        with self._locks.of(sender), disk_errors(self._contents.root):
            self._cluster.wait_notes_visible()
            entry = self.catalog.senders.get(sender)
            check_speaker(speaker, sender, entry)
            last = 0 if entry is None else entry.number
            if entry is not None and (number, document) == (entry.number, entry.document):
                if self._is_round_stored(entry):
                    return self._reply_committed(speaker, entry)
            elif number <= last:
                return BeginReply(RoundStatus.OLD, last)
            incoming = self._incoming.get(sender) or self._open(sender)
            self._incoming[sender] = incoming
            if not incoming.number or incoming.document != document:
                self._fetch_document(sender, document)
            incoming.begin(number, document, speaker.user, printable(name))
            if incoming.round is not None:
                incoming.sweep(set())
            wants = self._wants(sender, incoming)
            check_room(incoming, wants, self._cluster.options.time_unit.suffix, self._disk, self._contents.root)
            return BeginReply(RoundStatus.WANTED, last, wants)

    def chunk(
        self,
        speaker: Requester,
        sender: str,
        number: int,
        sha256: str,
        offset: int,
        crc32: int,
        data: bytes | memoryview,
    ) -> int:
        """See `Transport.chunk`. Raises RoundRefused, CorruptFile, UnsupportedFile, DiskFull, OSError."""
        with self._locks.of(sender), disk_errors(self._contents.root):
            incoming = require_in_progress(self._incoming.get(sender), speaker, sender, number)
            have = incoming.chunk(sha256, offset, crc32, data)
            if incoming.fresh_bytes >= self._ahead_bytes:
                incoming.fresh_bytes = 0
                self._chores.begin(partial(self._replica_store.announce_partial, sender, incoming.document, number))
            return have

    def commit(self, speaker: Requester, sender: str, number: int) -> BeginReply:
        """See `Transport.commit`. Raises RoundRefused, Unreachable (ask again), StorageError, OSError."""
        with self._locks.of(sender), disk_errors(self._contents.root):
            self._cluster.wait_notes_visible()
            entry, arriving = self.catalog.senders.get(sender), self._incoming.get(sender)
            if entry is not None and entry.number == number and (arriving is None or arriving.number != number):
                check_speaker(speaker, sender, entry)
                return self._reply_committed(speaker, entry)
            incoming = require_in_progress(arriving, speaker, sender, number)
            wants = self._wants(sender, incoming)
            if wants:
                return BeginReply(RoundStatus.WANTED, number, wants)
            assert incoming.round is not None
            held = self._hold(sender, incoming.document, number)
            if entry is not None and entry.document == incoming.document:  # the sender has sent the lost contents again
                begun = self._reply_committed(speaker, entry)
            else:
                entry = self._commit(speaker, incoming, incoming.round, held)
                begun = BeginReply(RoundStatus.COMMITTED, number, (), entry.conflicts)
            self._discard(sender, incoming)
            return begun

    def _is_round_stored(self, entry: SenderEntry) -> bool:
        """Return whether the answering nodes together have a whole committed round. Raises OSError (of this disk)."""
        try:
            round_ = self._round(entry.id, entry.document)
        except Unreachable:
            return False
        return not self._replica_store.missing(entry.id, names_of(entry.document, round_))

    def _fetch_document(self, sender: str, document: Content) -> None:
        """Copy the round's document from another node if one has it, so that the sender need not send it again."""
        arriving = self._contents.arriving(sender)
        name = f"{document.sha256}.round"
        if not self._disk.exists(f"{arriving.data}/{name}") and self._replica_store.fetch(sender, name, arriving):
            self._contents.make_durable(arriving)

    def _wants(self, sender: str, incoming: Incoming) -> tuple[MissingContent, ...]:
        """Return the contents of the round in progress that no answering node has."""
        wants = incoming.wants()
        if incoming.round is None:
            return wants
        names = {self._name(want.content, incoming.round): want for want in wants}
        return tuple(names[name] for name in self._replica_store.missing(sender, list(names)))

    def _name(self, content: Content, round_: Round) -> str:
        return f"{content.sha256}.schema" if content == round_.schema else f"{content.sha256}.tsfile"

    def _round(self, sender: str, document: Content) -> Round:
        return decode_round(self._replica_store.bytes_of(sender, f"{document.sha256}.round"))

    def _devices(self, sender: str, round_: Round) -> dict[str, DeviceSchema]:
        return devices_of_schema(self._replica_store.bytes_of(sender, f"{round_.schema.sha256}.schema"))

    # ------------------------------------------------------------------ commit

    def _hold(self, sender: str, document: Content, number: int) -> ReplicaSets:
        """Wait until a majority of each replica set has the whole round. Return the sets. Raises Unreachable."""
        now = self._clock.monotonic_ns()
        deadline, enough_since = now + int(_HOLD_SECONDS * 1e9), 0
        while True:
            replica_sets = self._replica_sets(sender)
            nodes = sorted(all_replicas(replica_sets))
            whole = [node for node in nodes if self._replica_store.held(node, sender, document, number)]
            now = self._clock.monotonic_ns()
            if has_quorum(replica_sets, whole):
                enough_since = enough_since or now
                if len(whole) == len(nodes) or now - enough_since > _OTHERS_SECONDS * 1e9:
                    self._cluster.wait_notes_visible()
                    if self._replica_sets(sender) == replica_sets:
                        return replica_sets
            elif now > deadline:
                raise Unreachable(
                    f"{len(whole)} of the nodes {', '.join(map(str, nodes))}, which store sender {sender}, have all of"
                    f" round {number}; a majority is required"
                )
            self._sleep(_POLL_SECONDS)

    def _commit(self, speaker: Requester, incoming: Incoming, round_: Round, held: ReplicaSets) -> SenderEntry:
        sender, devices = round_.sender, self._devices(round_.sender, round_)
        before: list[Round] = []

        def after(known: CatalogVersion, found: OwnershipDecision) -> SenderEntry:
            # The replica sets are as of `known` or newer. If they are newer, `put_notes` is refused.
            if self._replica_sets(sender) != held:
                raise Unreachable(f"the new replicas of sender {sender} must receive round {round_.number} first")
            entry = known.catalog.senders.get(sender)
            if entry is not None and entry.number >= round_.number:
                raise BeginAgain(
                    f"sender {sender} has sent round {entry.number} to another node; start the round again"
                )
            if entry is not None and not before:
                before.append(self._last_round(entry))
            last = before[0] if before else None
            return entry_after(entry, incoming, found, last, self._clock)

        return self._write(speaker, sender, devices, after)

    def _last_round(self, entry: SenderEntry) -> Round:
        """Return the sender's last committed round, or an empty round if no answering node has it."""
        try:
            return self._round(entry.id, entry.document)
        except Unreachable:
            return Round(entry.id, entry.number, "", 1, entry.document, ())

    def _reply_committed(self, speaker: Requester, entry: SenderEntry) -> BeginReply:
        """Answer that the round is committed, after granting refused devices that have become free.

        This also completes the schema if the commit was interrupted.
        """
        if entry.conflicts or not self._is_given(entry):
            devices = self._devices(entry.id, self._round(entry.id, entry.document))

            def after(known: CatalogVersion, found: OwnershipDecision) -> SenderEntry:
                now = known.catalog.senders.get(entry.id)
                if now is None or now.number != entry.number:
                    raise BeginAgain(f"sender {entry.id} was dropped or has sent another round; start again")
                return replace(now, devices=found.granted, conflicts=found.conflicts)

            entry = self._write(speaker, entry.id, devices, after)
        return BeginReply(RoundStatus.COMMITTED, entry.number, (), entry.conflicts)

    def _write(
        self,
        speaker: Requester,
        sender: str,
        devices: Mapping[str, DeviceSchema],
        after: Callable[[CatalogVersion, OwnershipDecision], SenderEntry],
    ) -> SenderEntry:
        """Write a sender's entry, with its granted devices, to the notes. Then adapt the schema to the sender's."""
        for _ in range(_ATTEMPTS_MAX):
            self._cluster.wait_all_visible()
            known = self._ledger.now
            try:
                entry = after(known, self._claim(speaker, sender, devices, known))
                if known.catalog.senders.get(sender) != entry:
                    self._cluster.put_notes(known.version, {key_of(sender): encode_entry(entry)})
            except UserMistake as error:
                if error.code != CHANGED and not schema.is_exists_error(error):
                    raise
                failure = error
            else:
                self._give(entry, devices)
                return entry
        raise failure

    def _claim(
        self, speaker: Requester, sender: str, devices: Mapping[str, DeviceSchema], known: CatalogVersion
    ) -> OwnershipDecision:
        """Create the devices that have no owner. Return the devices that the sender owns.

        Raises UserMistake (`is_exists_error`).
        """
        tree = self._cluster.schema
        found = claims(
            sender,
            devices,
            known.owners,
            lambda device: schema.is_own(tree, device),
            speaker.may_write,
            known.catalog.name_of,
        )
        new = [devices[device] for device in sorted(found.granted) if device not in known.owners]
        return found.without(schema.claim(self._cluster, sender, new))

    # ------------------------------------------------------------------ the schema

    def _give(self, entry: SenderEntry, devices: Mapping[str, DeviceSchema]) -> None:
        if self.catalog.senders.get(entry.id) != entry:
            return  # another node updates the schema for the newer entry
        schema.give(self._cluster, entry.id, devices, entry.devices, self._ledger.now.owners)
        now = self._clock.monotonic_ns()
        self._given[entry.id] = _SchemaUpdate(entry.document.sha256, entry.devices, now, done=True)

    def _is_given(self, entry: SenderEntry) -> bool:
        given = self._given.get(entry.id)
        return given is not None and given.done and (given.document, given.devices) == _schema_version(entry)

    def finish(self) -> None:
        """Complete the schema changes of interrupted commits. A failure is logged, and retried at the next call.

        The meta group's leader calls this from time to time.
        """
        now = self._clock.monotonic_ns()
        for entry in self.catalog.senders.values():
            given = self._given.get(entry.id)
            if given is None or (given.document, given.devices) != _schema_version(entry):
                given = self._given[entry.id] = _SchemaUpdate(*_schema_version(entry), now, done=False)
            if given.done or now - given.since_ns < _UNFINISHED_NS:
                continue
            try:
                self._give(entry, self._devices(entry.id, self._round(entry.id, entry.document)))
            except StorageError as error:
                logger.info("applying a sender's schema is postponed", extra={"sender": entry.id, "why": str(error)})

    def remove_finished(self) -> None:
        """Remove the arrived contents of rounds that were committed, here or at another node."""
        for sender, incoming in list(self._incoming.items()):
            lock = self._locks.of(sender)
            if lock.acquire(blocking=False):
                try:
                    if self._is_finished(incoming, self.catalog.senders.get(sender)):
                        self._discard(sender, incoming)
                finally:
                    lock.release()

    def _is_finished(self, incoming: Incoming, entry: SenderEntry | None) -> bool:
        if not incoming.number:
            return True
        if entry is None or incoming.number > entry.number:
            return False
        # If the committed round has lost contents, the sender may be sending them here again.
        return incoming.number < entry.number or self._is_round_stored(entry)

    def _discard(self, sender: str, incoming: Incoming) -> None:
        incoming.end()
        self._disk.remove_tree(self._contents.arriving(sender).folder)
        self._incoming.pop(sender, None)

    # ------------------------------------------------------------------ administration

    def transfer(self, device: str, sender: str) -> None:
        """Make another sender the owner of a device. Raises NoSuchSender, RoundRefused, StorageError."""
        for _ in range(_ATTEMPTS_MAX):
            self._cluster.wait_notes_visible()
            known = self._ledger.now
            entry = self.catalog.entry(sender)
            devices = self._devices(sender, self._round(sender, entry.document))
            changed = transferred(known.catalog, known.owners, devices, device, sender)
            if not changed:
                return
            texts = {key_of(entry.id): encode_entry(entry) for entry in changed}
            try:
                self._cluster.put_notes(known.version, texts)
            except UserMistake as error:
                if error.code != CHANGED:
                    raise
                failure = error
            else:
                self._give(changed[-1], devices)
                return
        raise failure

    def drop(self, sender: str) -> int:
        """Remove a sender and all its data. Return the number of its devices. Raises NoSuchSender, StorageError."""
        with self._locks.of(sender):
            for _ in range(_ATTEMPTS_MAX):
                self._cluster.wait_notes_visible()
                known = self._ledger.now
                entry = self.catalog.entry(sender)
                schema.give(self._cluster, sender, {}, frozenset(), set(known.owners) - entry.devices)
                try:
                    self._cluster.put_notes(known.version, {key_of(sender): ""})
                except UserMistake as error:
                    if error.code != CHANGED:
                        raise
                    failure = error
                else:
                    self._given.pop(sender, None)
                    if sender in self._incoming:
                        self._discard(sender, self._incoming[sender])
                    return len(entry.devices)
            raise failure

    def rounds_in_progress(self) -> dict[str, tuple[int, int]]:
        """Return, for each sender, the round that is arriving at this node and its missing bytes (-1 if unknown)."""
        found = {}
        for sender, incoming in list(self._incoming.items()):
            with self._locks.of(sender):
                if incoming.number:
                    found[sender] = incoming.number, incoming.lacking
        return found

    def size_of(self, sender: str) -> tuple[int, int]:
        """Return the number of a sender's files and their bytes, or zeros if no answering node has its document."""
        entry = self.catalog.senders.get(sender)
        if entry is None:
            return 0, 0
        known = self._sizes.get(sender)
        if known is None or known[0] != entry.document:
            try:
                contents = {file.content for file in self._round(sender, entry.document).files()}
            except Unreachable:
                return 0, 0
            size = sum(content.size for content in contents)
            known = self._sizes[sender] = entry.document, (len(contents), size)
        return known[1]


def _schema_version(entry: SenderEntry) -> tuple[str, frozenset[str]]:
    return entry.document.sha256, entry.devices

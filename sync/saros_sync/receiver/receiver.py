"""Handle the rounds of all senders: requests, commits, and recovery at the start.

    <data>/sync-receiver/device_owner          senders, their rounds, their devices (`catalog`)
                         <sender>/load.log     the round in progress (`incoming`)
                                  data/        contents (`mirror`)

The steps of a commit: all contents are durable and checked; the devices are granted or refused (`ownership`);
`device_owner` is replaced, which is the commit point; the store's schema is brought in line (`reconcile`); readers see
the round; contents that no round needs are removed. A restart reads `device_owner`, and repeats the steps after the
commit point. So the round and the owners of devices change together or not at all. If a sender repeats a committed
round, the answer is that it is committed.

IoTDB's former sync tool adds the sender's address to the name of its folder, and has two journals and a `sync.end`
file. In Saros the id suffices, one journal covers receiving and loading, and a round ends with its entry in
`device_owner`.

Thread-safe. `VisibleSenders` is an immutable value: a reader uses the same value from its beginning to its end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile
from saros_storage.folder.layout import confirm, write_durably
from saros_storage.folder.store_options import StoreOptions
from saros_storage.io.disk import Disk
from saros_storage.schema import SchemaChange, SchemaTree
from saros_sync.receiver.catalog import (
    Catalog,
    SenderEntry,
    decode_catalog,
    encode_catalog,
    entry_after,
    transferred,
)
from saros_sync.receiver.checking import Executor
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.mirror import FOLDER, Mirror, MirrorFolder, load_document, open_mirror, set_aside, without
from saros_sync.receiver.ownership import OwnershipDecision, claims
from saros_sync.receiver.reconcile import refused, repair
from saros_sync.receiver.request_checks import (
    Requester,
    SenderLocks,
    check_room,
    check_speaker,
    disk_errors,
    printable,
    require_in_progress,
)
from saros_sync.round import Content, Round, is_sender
from saros_sync.transport import BeginReply, RoundStatus

_CATALOG = "device_owner"


class Host(Protocol):
    """The part of the store that the receiver uses."""

    @property
    def schema(self) -> SchemaTree:
        """The schema, which the receiver only reads."""
        ...

    @property
    def options(self) -> StoreOptions:
        """The store's options. The receiver reads the time unit."""
        ...

    def change_schema_unguarded(self, changes: Sequence[SchemaChange]) -> None:
        """Apply changes atomically, without the check for senders' devices."""
        ...


class VisibleSenders(msgspec.Struct, frozen=True):
    """The senders' data that readers see: the owner of each synced device, and the owners' mirrors."""

    owners: Mapping[str, str] = msgspec.field(default_factory=dict)
    mirrors: Mapping[str, Mirror] = msgspec.field(default_factory=dict)


class Receiver:
    """The receiver of a store that is not part of a cluster."""

    def __init__(self, data: str, disk: Disk, clock: Clock, host: Host, chores: Executor) -> None:
        self._root = os.path.join(data, FOLDER)
        self._disk = disk
        self._clock = clock
        self._host = host
        self._chores = chores
        #: Held while owners change, and by the store while it creates its own devices. It is taken after a sender's
        #: lock.
        self.lock = threading.RLock()
        #: One lock per sender, which serializes the sender's requests.
        self._sender_locks = SenderLocks()
        self._incoming: dict[str, Incoming] = {}
        #: This object is replaced by a new one, and never modified.
        self.catalog = Catalog()
        self.shown = VisibleSenders()
        #: The owners of the catalog, which may be ahead of `shown` for a moment.
        self.owners: Mapping[str, str] = {}
        #: Senders whose commit has begun and is not complete. After a disk error, such senders stay in this set.
        self._unshown: set[str] = set()

    def open(self) -> None:
        """Show all committed rounds. Raises CorruptFile (`device_owner`, or a sender's schema), OSError."""
        path = os.path.join(self._root, _CATALOG)
        if self._disk.exists(path):
            self._open_committed(path)
        self._open_first_rounds()

    def _open_committed(self, path: str) -> None:
        confirm(self._disk, path)
        self.catalog = decode_catalog(path, bytes(self._disk.map(path)))
        self.owners = self.catalog.owners()
        for entry in self.catalog.senders.values():
            self._show(entry, self._load(entry))

    def _open_first_rounds(self) -> None:
        """Resume the interrupted first rounds of senders. Remove folders that an interrupted drop left."""
        for name in self._disk.list(self._root):
            if is_sender(name) and name not in self.catalog.senders and not self._incoming_of(name).number:
                self._incoming.pop(name).close()
                self._disk.remove_tree(self._folder(name).folder)

    def _load(self, entry: SenderEntry) -> Mirror:
        """Return the mirror of a committed round. If the round is unreadable, return an empty mirror to be refilled."""
        folder = self._folder(entry.id)
        try:
            round_ = load_document(self._disk, folder, entry.document)
            mirror = open_mirror(self._disk, folder, entry.document, round_, None, self.report_corrupt)
        except (CorruptFile, FileNotFoundError) as error:
            self._disk.remove(folder.document(entry.document))
            unit = self._host.options.time_unit.suffix
            nothing = Round(entry.id, entry.number, unit, 1, entry.document, ())
            return Mirror(entry.document, nothing, {}, {}, {entry.document.sha256: str(error)})
        for file in round_.files():
            if file.content.sha256 in mirror.damaged:
                set_aside(self._disk, folder.tsfile(file.content))
        return mirror

    def close(self) -> None:
        """Close all files, and end the threads of `chores`."""
        with self.lock:
            for incoming in self._incoming.values():
                incoming.close()
            self._chores.close()

    # ------------------------------------------------------------------ requests of senders

    def begin(self, speaker: Requester, sender: str, name: str, number: int, document: Content) -> BeginReply:
        """See `Transport.begin`. Raises RoundRefused, DiskFull, StorageError."""
        with self._sender_locks.of(sender), self.lock, disk_errors(self._root):
            entry = self.catalog.senders.get(sender)
            check_speaker(speaker, sender, entry)
            last = 0 if entry is None else entry.number
            mirror = None if entry is None else self._mirror_of(entry)
            if entry is not None and mirror is not None and (number, document) == (entry.number, entry.document):
                if not mirror.damaged:
                    return self._reply_committed(speaker, entry, mirror)
            elif number <= last:
                return BeginReply(RoundStatus.OLD, last)
            incoming = self._incoming_of(sender)
            incoming.begin(number, document, speaker.user, printable(name))
            if incoming.round is not None:
                incoming.sweep(self._needed(sender))
            wants = incoming.wants()
            check_room(incoming, wants, self._host.options.time_unit.suffix, self._disk, self._root)
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
        with self._sender_locks.of(sender), disk_errors(self._root):
            incoming = self._require_in_progress(speaker, sender, number)
            return incoming.chunk(sha256, offset, crc32, data)

    def commit(self, speaker: Requester, sender: str, number: int) -> BeginReply:
        """See `Transport.commit`. Raises RoundRefused, StorageError, OSError."""
        with self._sender_locks.of(sender), self.lock, disk_errors(self._root):
            entry = self.catalog.senders.get(sender)
            mirror = None if entry is None else self._mirror_of(entry)
            if entry is not None and mirror is not None and entry.number == number and not mirror.damaged:
                check_speaker(speaker, sender, entry)
                return self._reply_committed(speaker, entry, mirror)
            incoming = self._require_in_progress(speaker, sender, number)
            wants = incoming.wants()
            if wants:
                return BeginReply(RoundStatus.WANTED, number, wants)
            assert incoming.round is not None
            entry = self._commit(speaker, sender, incoming, incoming.round)
            return BeginReply(RoundStatus.COMMITTED, number, (), entry.conflicts)

    def _require_in_progress(self, speaker: Requester, sender: str, number: int) -> Incoming:
        return require_in_progress(self._incoming.get(sender), speaker, sender, number)

    # ------------------------------------------------------------------ commit

    def _commit(self, speaker: Requester, sender: str, incoming: Incoming, round_: Round) -> SenderEntry:
        folder, before = self._folder(sender), self.shown.mirrors.get(sender)
        document = incoming.document
        mirror = open_mirror(self._disk, folder, document, round_, before, self.report_corrupt)
        known = self.catalog.senders.get(sender)
        old = frozenset() if known is None else known.devices
        found = self._claim(speaker, sender, mirror)
        entry = entry_after(known, incoming, found, None if before is None else before.round, self._clock)
        self._unshown.add(sender)
        self._take_schema(old - found.granted)
        self._save(self.catalog.with_entry(entry))
        self._show(entry, mirror)
        return entry

    def _show(self, entry: SenderEntry, mirror: Mirror) -> None:
        """Show a committed round to readers, and remove contents that it does not need. Idempotent. Raises OSError."""
        self._give_schema(mirror, entry.devices)
        before = self.shown.mirrors.get(entry.id)
        if before is not None and before is not mirror:
            before.keep_open()
        self._set_shown({**self.shown.mirrors, entry.id: mirror})
        self._forget_rest(entry, mirror)
        self._unshown.discard(entry.id)

    def _set_shown(self, mirrors: Mapping[str, Mirror]) -> None:
        self.shown = VisibleSenders(
            {device: owner for device, owner in self.owners.items() if owner in mirrors}, mirrors
        )

    def _mirror_of(self, entry: SenderEntry) -> Mirror:
        """Return the visible mirror of a sender, after completing a commit that a disk error interrupted."""
        known = self.shown.mirrors.get(entry.id)
        if known is not None and entry.id not in self._unshown:
            return known
        mirror = known if known is not None and known.document == entry.document else self._load(entry)
        self._show(entry, mirror)
        return mirror

    def _claim(self, speaker: Requester, sender: str, mirror: Mirror) -> OwnershipDecision:
        owners, schema = self.catalog.owners(), self._host.schema
        found = claims(
            sender,
            mirror.devices,
            owners,
            lambda device: schema.device(device) is not None,
            speaker.may_write,
            self.catalog.name_of,
        )
        new = [mirror.devices[device] for device in sorted(found.granted) if device not in owners]
        return found.without(refused(schema, new))

    def _reply_committed(self, speaker: Requester, entry: SenderEntry, mirror: Mirror) -> BeginReply:
        """Answer that the round is committed, after granting refused devices that have become free."""
        if entry.conflicts:
            found = self._claim(speaker, entry.id, mirror)
            if found != OwnershipDecision(entry.devices, entry.conflicts):
                self._unshown.add(entry.id)
                self._take_schema(entry.devices - found.granted)
                entry = replace(entry, devices=found.granted, conflicts=found.conflicts)
                self._save(self.catalog.with_entry(entry))
                self._show(entry, mirror)
        return BeginReply(RoundStatus.COMMITTED, entry.number, (), entry.conflicts)

    def _take_schema(self, lost: frozenset[str]) -> None:
        """Drop from the store's schema the devices that the sender loses.

        This happens before the commit: if the commit fails, the next start creates the devices again.
        """
        drops = repair(self._host.schema, (), sorted(lost)).drops
        if drops:
            self._host.change_schema_unguarded(drops)

    def _give_schema(self, mirror: Mirror, granted: frozenset[str]) -> None:
        """Give the granted devices the sender's definitions in the store's schema."""
        wanted = [mirror.devices[device] for device in sorted(granted) if device in mirror.devices]
        changes = repair(self._host.schema, wanted, ())
        for part in (changes.drops, changes.creates):
            if part:
                self._host.change_schema_unguarded(part)

    def _save(self, catalog: Catalog) -> None:
        self._disk.make_folder(self._root)
        write_durably(self._disk, os.path.join(self._root, _CATALOG), encode_catalog(catalog))
        self.catalog = catalog
        self.owners = catalog.owners()

    # ------------------------------------------------------------------ administration

    def transfer(self, device: str, sender: str) -> None:
        """Make another sender the owner of a device. Raises NoSuchSender, RoundRefused, OSError."""
        with self.lock:
            mirror = self._mirror_of(self.catalog.entry(sender))
            catalog = self.catalog
            for changed in transferred(catalog, self.owners, mirror.devices, device, sender):
                catalog = catalog.with_entry(changed)
            self._unshown.add(sender)
            self._save(catalog)
            self._show(catalog.senders[sender], mirror)

    def drop(self, sender: str) -> int:
        """Remove a sender and all its data. Return the number of its devices. Raises NoSuchSender, OSError."""
        if not is_sender(sender):
            self.catalog.entry(sender)
        with self._sender_locks.of(sender), self.lock:
            entry = self.catalog.entry(sender)
            mirror = self._mirror_of(entry)
            self._unshown.add(sender)
            self._take_schema(entry.devices)
            self._save(self.catalog.without(sender))
            mirror.keep_open()
            self._set_shown({id_: found for id_, found in self.shown.mirrors.items() if id_ != sender})
            self._unshown.discard(sender)
            incoming = self._incoming.pop(sender, None)
            if incoming is not None:
                incoming.close()
            self._disk.remove_tree(self._folder(sender).folder)
            return len(entry.devices)

    def rounds_in_progress(self) -> dict[str, tuple[int, int]]:
        """Return, for each sender, the number of the round in progress and its missing bytes (-1 if not known yet)."""
        found = {}
        with self.lock:
            for sender, incoming in self._incoming.items():
                if incoming.number:
                    found[sender] = incoming.number, incoming.lacking
        return found

    def size_of(self, sender: str) -> tuple[int, int]:
        """Return the number of a sender's visible files, and their bytes."""
        mirror = self.shown.mirrors.get(sender)
        sizes = {} if mirror is None else {file.path: file.size for file in mirror.files}
        return len(sizes), sum(sizes.values())

    def report_corrupt(self, path: str, error: CorruptFile) -> None:
        """Remove a damaged file from all later views. The sender is asked for the file again."""
        with self.lock:
            sender = os.path.basename(os.path.dirname(os.path.dirname(path)))
            mirror = self.shown.mirrors.get(sender)
            if mirror is not None:
                set_aside(self._disk, path)
                mirrors = {**self.shown.mirrors, sender: without(mirror, path, str(error))}
                self.shown = VisibleSenders(self.shown.owners, mirrors)

    def problems(self) -> tuple[str, ...]:
        """Return the problems with senders' data, for operators."""
        return tuple(
            f"{self.catalog.name_of(sender)}: {reason}"
            for sender, mirror in self.shown.mirrors.items()
            for reason in mirror.damaged.values()
        )

    # ------------------------------------------------------------------ folders

    def _folder(self, sender: str) -> MirrorFolder:
        assert is_sender(sender)
        return MirrorFolder(os.path.join(self._root, sender))

    def _incoming_of(self, sender: str) -> Incoming:
        incoming = self._incoming.get(sender)
        if incoming is None:
            incoming = self._incoming[sender] = Incoming(self._folder(sender), self._disk, self._chores)
        return incoming

    def _needed(self, sender: str) -> set[str]:
        mirror = self.shown.mirrors.get(sender)
        return set() if mirror is None else self._folder(sender).names(mirror.document, mirror.round)

    def _forget_rest(self, entry: SenderEntry, mirror: Mirror) -> None:
        """Remove the journal of a committed round, and all contents that the sender's rounds no longer need."""
        if mirror.damaged:
            return
        incoming = self._incoming_of(entry.id)
        if incoming.number and incoming.number <= entry.number:
            incoming.end()
        if not incoming.number or incoming.round is not None:
            incoming.sweep(self._folder(entry.id).names(entry.document, mirror.round))

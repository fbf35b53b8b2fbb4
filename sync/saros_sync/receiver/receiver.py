"""All senders' rounds: what they may ask, what is shown of them, and what a start finds.

    <data>/sync-receiver/device_owner          senders, their rounds, their devices (`catalog`)
                         <sender>/load.log     the round in hand (`incoming`)
                                  data/        contents (`mirror`)

Commit, in this order: all contents are here, durable and checked; the devices are granted or refused (`ownership`);
`device_owner` is replaced: this is the moment; the store's schema gets what it lacks (`reconcile`); readers see the
round; what nobody needs goes. A start reads `device_owner` and does the rest again. So the round and its owners come
together or not at all, and a round that comes twice finds itself committed.

Seed 1 names a sender's folder by its address too, has two journals and `sync.end`; here an id is enough, what is
received and what is loaded is one journal, and the end of a round is that `device_owner` has it.

Thread-safe. `Shown` is a value: whoever reads keeps the one that was when it began.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from saros_storage.clock import Clock
from saros_storage.disk import FULL_ERRNOS, Disk
from saros_storage.errors import CorruptFile, DiskFull, UnsupportedFile
from saros_storage.layout import confirm, write_durably
from saros_storage.opened_file import OpenedFile
from saros_storage.schema import SchemaChange, SchemaTree
from saros_storage.store_options import StoreOptions
from saros_sync.errors import NoSuchSender, RoundRefused
from saros_sync.receiver.catalog import (
    HISTORY_MAX,
    Catalog,
    PastRound,
    SenderEntry,
    decode_catalog,
    encode_catalog,
)
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.mirror import Mirror, MirrorFolder, load_document, open_mirror, without
from saros_sync.receiver.ownership import claims
from saros_sync.receiver.reconcile import refused, repair
from saros_sync.round import Content, Round, is_sender
from saros_sync.transport import Begun, Conflict, Standing, Want

FOLDER = "sync-receiver"
_CATALOG = "device_owner"
_SENDERS_MAX = 10_000
_NAME_CHARS_MAX = 100
#: Of a damaged file, until the next round is committed.
_ASIDE = ".corrupt"
#: What a round leaves free on the disk, for the store.
_RESERVED_BYTES = 256 << 20


class Host(Protocol):
    """The store that shows what was sent."""

    @property
    def schema(self) -> SchemaTree:
        """Look, do not change."""
        ...

    @property
    def options(self) -> StoreOptions:
        """Its unit of time."""
        ...

    def change_own_schema(self, changes: Sequence[SchemaChange]) -> None:
        """Carry out changes, all or none, of devices that are senders' too."""
        ...


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who asks: a user, and what it may write; a server without users lets everybody."""

    user: str = ""
    may_write: Callable[[str], bool] = lambda _: True
    administrator: bool = True


@dataclass(frozen=True, slots=True)
class Shown:
    """What readers see of senders: the owner of each device that has one, and its owner's partitions."""

    owners: Mapping[str, str] = field(default_factory=dict)
    mirrors: Mapping[str, Mirror] = field(default_factory=dict)


class Receiver:
    """See the module."""

    def __init__(self, data: str, disk: Disk, clock: Clock, host: Host) -> None:
        self._root = os.path.join(data, FOLDER)
        self._disk = disk
        self._clock = clock
        self._host = host
        #: Held while owners change, and by a store that makes devices of its own; after a sender's.
        self.lock = threading.RLock()
        #: One question of a sender at a time.
        self._sender_locks: dict[str, threading.Lock] = {}
        self._incoming: dict[str, Incoming] = {}
        #: Replaced as a whole.
        self.catalog = Catalog()
        self.shown = Shown()
        #: As the catalog has them, which may be a moment ahead of what is shown.
        self.owners: Mapping[str, str] = {}

    def open(self) -> None:
        """Show what was committed. Raises CorruptFile (`device_owner`, or a sender's schema), OSError."""
        path = os.path.join(self._root, _CATALOG)
        if self._disk.exists(path):
            self._open_committed(path)
        self._open_first_rounds()

    def _open_committed(self, path: str) -> None:
        confirm(self._disk, path)
        self.catalog = decode_catalog(path, bytes(self._disk.map(path)))
        self.owners = self.catalog.owners()
        mirrors = {entry.id: self._load(entry) for entry in self.catalog.senders.values()}
        self.shown = Shown(self.owners, mirrors)
        for entry in self.catalog.senders.values():
            self._give_schema(mirrors[entry.id], entry.devices)
            self._forget_rest(entry, mirrors[entry.id])

    def _open_first_rounds(self) -> None:
        """First rounds of senders that were cut short go on; what a drop left goes."""
        for name in self._disk.list(self._root):
            if is_sender(name) and name not in self.catalog.senders and not self._incoming_of(name).number:
                self._incoming.pop(name).close()
                self._disk.remove_tree(self._folder(name).folder)

    def _load(self, entry: SenderEntry) -> Mirror:
        """What was committed; an empty mirror, which the sender fills again, if it cannot be read."""
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
                self._set_aside(folder.tsfile(file.content))
        return mirror

    def close(self) -> None:
        """Close all files."""
        with self.lock:
            for incoming in self._incoming.values():
                incoming.close()

    # ------------------------------------------------------------------ what senders ask

    def begin(self, speaker: Speaker, sender: str, name: str, number: int, document: Content) -> Begun:
        """See `Transport.begin`. Raises RoundRefused, DiskFull, StorageError."""
        with self._sender_lock(sender), self.lock, _disk_errors(self._root):
            self._check_speaker(speaker, sender)
            entry = self.catalog.senders.get(sender)
            last = 0 if entry is None else entry.number
            if entry is not None and (number, document) == (entry.number, entry.document):
                if not self.shown.mirrors[sender].damaged:
                    return self._settled(speaker, entry)
            elif number <= last:
                return Begun(Standing.OLD, last)
            incoming = self._incoming_of(sender)
            incoming.begin(number, document, speaker.user, _printable(name))
            if incoming.round is not None:
                incoming.sweep(self._needed(sender))
            wants = incoming.wants()
            self._check_room(incoming, wants)
            return Begun(Standing.WANTED, last, wants)

    def chunk(
        self, speaker: Speaker, sender: str, number: int, sha256: str, offset: int, crc32: int, data: bytes
    ) -> int:
        """See `Transport.chunk`. Raises RoundRefused, CorruptFile, UnsupportedFile, DiskFull, OSError."""
        with self._sender_lock(sender), _disk_errors(self._root):
            incoming = self._in_hand(speaker, sender, number)
            return incoming.chunk(sha256, offset, crc32, data)

    def commit(self, speaker: Speaker, sender: str, number: int) -> Begun:
        """See `Transport.commit`. Raises RoundRefused, StorageError, OSError."""
        with self._sender_lock(sender), self.lock, _disk_errors(self._root):
            entry = self.catalog.senders.get(sender)
            if entry is not None and entry.number == number and not self.shown.mirrors[sender].damaged:
                self._check_speaker(speaker, sender)
                return self._settled(speaker, entry)
            incoming = self._in_hand(speaker, sender, number)
            wants = incoming.wants()
            if wants:
                return Begun(Standing.WANTED, number, wants)
            assert incoming.round is not None
            entry = self._commit(speaker, sender, incoming, incoming.round)
            return Begun(Standing.COMMITTED, number, (), entry.conflicts)

    def _in_hand(self, speaker: Speaker, sender: str, number: int) -> Incoming:
        incoming = self._incoming.get(sender)
        if incoming is None or incoming.number != number or number == 0:
            raise RoundRefused(f"round {number} of sender {sender} is not in hand here: begin again")
        if incoming.user != speaker.user:
            raise RoundRefused(f"sender {sender} is another user's: give this one an id of its own")
        return incoming

    def _check_speaker(self, speaker: Speaker, sender: str) -> None:
        entry = self.catalog.senders.get(sender)
        if entry is not None and entry.user not in ("", speaker.user) and not speaker.administrator:
            raise RoundRefused(f"sender {sender} is another user's: give this one an id of its own")

    def _check_room(self, incoming: Incoming, wants: Sequence[Want]) -> None:
        unit = self._host.options.time_unit.suffix
        if incoming.round is not None and incoming.round.time_unit != unit:
            raise RoundRefused(f"the sender's unit of time is {incoming.round.time_unit}, the receiver's is {unit}")
        needed = sum(want.content.size - want.have for want in wants)
        if needed + _RESERVED_BYTES > self._disk.free_bytes(self._root):
            raise DiskFull(f"the round needs {needed} bytes more than there should be used of {self._root}")

    # ------------------------------------------------------------------ commit

    def _commit(self, speaker: Speaker, sender: str, incoming: Incoming, round_: Round) -> SenderEntry:
        folder, before = self._folder(sender), self.shown.mirrors.get(sender)
        document = incoming.document
        mirror = open_mirror(self._disk, folder, document, round_, before, self.report_corrupt)
        known = self.catalog.senders.get(sender)
        old = frozenset() if known is None else known.devices
        granted, conflicts = self._claim(speaker, sender, mirror)
        now_ns = self._clock.now_ns()
        fresh = {f.path for f in mirror.files} - ({f.path for f in before.files} if before is not None else set())
        past = PastRound(
            round_.number,
            now_ns,
            len(fresh),
            sum({f.path: f.size for f in mirror.files if f.path in fresh}.values()),
            len(conflicts),
        )
        history = (*(known.history if known is not None else ()), past)[-HISTORY_MAX:]
        user = known.user if known is not None and known.user else incoming.user
        entry = SenderEntry(sender, incoming.name, user, round_.number, document, granted, conflicts, history)
        self._take_schema(old - granted)
        self._save(self.catalog.with_entry(entry))
        self._give_schema(mirror, granted)
        self._keep_open(before)
        self.shown = Shown(self.catalog.owners(), {**self.shown.mirrors, sender: mirror})
        incoming.end()
        incoming.sweep(folder.names(document, round_))
        return entry

    def _claim(self, speaker: Speaker, sender: str, mirror: Mirror) -> tuple[frozenset[str], tuple[Conflict, ...]]:
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
        unplaced = refused(schema, new)
        conflicts = [Conflict(device, "this server", reason) for device, reason in unplaced.items()]
        return found.granted - set(unplaced), (*found.conflicts, *conflicts)

    def _settled(self, speaker: Speaker, entry: SenderEntry) -> Begun:
        """The round is committed; devices that were refused may be free by now."""
        if entry.conflicts:
            mirror = self.shown.mirrors[entry.id]
            granted, conflicts = self._claim(speaker, entry.id, mirror)
            if (granted, conflicts) != (entry.devices, entry.conflicts):
                self._take_schema(entry.devices - granted)
                entry = replace(entry, devices=granted, conflicts=conflicts)
                self._save(self.catalog.with_entry(entry))
                self._give_schema(mirror, granted)
                self.shown = Shown(self.catalog.owners(), self.shown.mirrors)
        return Begun(Standing.COMMITTED, entry.number, (), entry.conflicts)

    def _take_schema(self, lost: frozenset[str]) -> None:
        """Devices that are to be nobody's leave the store's schema; before the commit, since a start gives it back."""
        drops = repair(self._host.schema, (), sorted(lost)).drops
        if drops:
            self._host.change_own_schema(drops)

    def _give_schema(self, mirror: Mirror, granted: frozenset[str]) -> None:
        """Let the store's schema have the granted devices as the sender has them."""
        wanted = [mirror.devices[device] for device in sorted(granted) if device in mirror.devices]
        changes = repair(self._host.schema, wanted, ())
        for part in (changes.drops, changes.creates):
            if part:
                self._host.change_own_schema(part)

    def _save(self, catalog: Catalog) -> None:
        self._disk.make_folder(self._root)
        write_durably(self._disk, os.path.join(self._root, _CATALOG), encode_catalog(catalog))
        self.catalog = catalog
        self.owners = catalog.owners()

    def _keep_open(self, mirror: Mirror | None) -> None:
        """Files of a round that is no longer shown stay readable for views that are open."""
        for file in mirror.files if mirror is not None else ():
            assert isinstance(file.access, OpenedFile)
            with suppress(CorruptFile, UnsupportedFile):  # whoever reads it will be told
                file.access.open()

    # ------------------------------------------------------------------ what people ask

    def transfer(self, device: str, sender: str) -> None:
        """Show a device as another sender has it, from now on. Raises NoSuchSender, RoundRefused."""
        with self.lock:
            entry = self._entry(sender)
            mirror = self.shown.mirrors[sender]
            if device not in mirror.devices:
                raise RoundRefused(f"{self.catalog.name_of(sender)} has not sent {device}")
            owner = self.catalog.owners().get(device)
            if owner is None:
                raise RoundRefused(f"{device} is no sender's: drop it here, and the next round brings it")
            catalog = self.catalog
            if owner != sender:
                loser = catalog.senders[owner]
                reason = Conflict(device, catalog.name_of(sender), "it was transferred")
                catalog = catalog.with_entry(
                    replace(loser, devices=loser.devices - {device}, conflicts=(*loser.conflicts, reason))
                )
            conflicts = tuple(c for c in entry.conflicts if c.device != device)
            self._save(catalog.with_entry(replace(entry, devices=entry.devices | {device}, conflicts=conflicts)))
            self._give_schema(mirror, frozenset({device}))
            self.shown = Shown(self.catalog.owners(), self.shown.mirrors)

    def drop(self, sender: str) -> int:
        """Forget a sender with all that it has sent; how many devices it had. Raises NoSuchSender, OSError."""
        if not is_sender(sender):
            self._entry(sender)
        with self._sender_lock(sender), self.lock:
            entry = self._entry(sender)
            mirror = self.shown.mirrors[sender]
            self._take_schema(entry.devices)
            self._save(self.catalog.without(sender))
            self._keep_open(mirror)
            left = {id_: found for id_, found in self.shown.mirrors.items() if id_ != sender}
            self.shown = Shown(self.catalog.owners(), left)
            incoming = self._incoming.pop(sender, None)
            if incoming is not None:
                incoming.close()
            self._disk.remove_tree(self._folder(sender).folder)
            return len(entry.devices)

    def _entry(self, sender: str) -> SenderEntry:
        entry = self.catalog.senders.get(sender)
        if entry is None:
            raise NoSuchSender(f"nobody of the id {sender!r} has sent anything here: look with SHOW SENDERS")
        return entry

    def in_hand(self) -> dict[str, tuple[int, int]]:
        """By sender: the round that is on its way, and how many bytes of it are lacking; -1: that is not known yet."""
        found = {}
        with self.lock:
            for sender, incoming in self._incoming.items():
                if incoming.number:
                    lacking = sum(want.content.size - want.have for want in incoming.wants())
                    found[sender] = incoming.number, lacking if incoming.round is not None else -1
        return found

    def report_corrupt(self, path: str, error: CorruptFile) -> None:
        """Take a damaged file out of all later views; the sender is asked for it again."""
        with self.lock:
            sender = os.path.basename(os.path.dirname(os.path.dirname(path)))
            mirror = self.shown.mirrors.get(sender)
            if mirror is not None:
                self._set_aside(path)
                mirrors = {**self.shown.mirrors, sender: without(mirror, path, str(error))}
                self.shown = Shown(self.shown.owners, mirrors)

    def _set_aside(self, path: str) -> None:
        """Let a damaged file be wanted again; a view that has it open keeps it."""
        if self._disk.exists(path):
            self._disk.replace(path, path + _ASIDE)

    def problems(self) -> tuple[str, ...]:
        """Sentences for whoever looks after the server."""
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
            incoming = self._incoming[sender] = Incoming(self._folder(sender), self._disk)
        return incoming

    def _sender_lock(self, sender: str) -> threading.Lock:
        if not is_sender(sender):
            raise RoundRefused(f"{sender[:64]!r} is no sender's id: 32 hexadecimal digits")
        with self.lock:
            if sender not in self._sender_locks and len(self._sender_locks) >= _SENDERS_MAX:
                raise RoundRefused(f"there are {_SENDERS_MAX} senders: drop some")
            return self._sender_locks.setdefault(sender, threading.Lock())

    def _needed(self, sender: str) -> set[str]:
        mirror = self.shown.mirrors.get(sender)
        return set() if mirror is None else self._folder(sender).names(mirror.document, mirror.round)

    def _forget_rest(self, entry: SenderEntry, mirror: Mirror) -> None:
        """What a commit that was cut short left."""
        if mirror.damaged:
            return
        incoming = self._incoming_of(entry.id)
        if incoming.number and incoming.number <= entry.number:
            incoming.end()
        if not incoming.number or incoming.round is not None:
            incoming.sweep(self._folder(entry.id).names(entry.document, mirror.round))


@contextmanager
def _disk_errors(folder: str) -> Iterator[None]:
    """A full disk, as senders understand it: they ask again later."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_ERRNOS:
            raise DiskFull(f"no space left in {folder}") from error
        raise


def _printable(name: str) -> str:
    return "".join(c for c in name[:_NAME_CHARS_MAX] if c.isprintable())

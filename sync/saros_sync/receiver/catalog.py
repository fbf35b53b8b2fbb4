"""`device_owner`: all senders, their rounds, and the owner of each device. Replacing the file commits a round.

    {"senders": {"a45b...": {"number": 7, "document": ["9f...", 812], "devices": [...], ...}}}

Values. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from saros_storage.base.clock import Clock
from saros_storage.base.errors import CorruptFile
from saros_sync.errors import NoSuchSender, RoundRefused
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.receiver.incoming import Incoming
from saros_sync.receiver.ownership import OwnershipDecision
from saros_sync.round import Content, Round
from saros_sync.transport import Conflict

_KIND = "device_owner"
#: The maximum number of past rounds that the catalog keeps for each sender.
HISTORY_MAX = 20


class PastRound(msgspec.Struct, frozen=True):
    """A committed round.

    `committed_ns` is the time since the epoch by this server's clock. `files` and `size` (bytes) count the new files.
    """

    number: int
    committed_ns: int
    files: int
    size: int
    conflicts: int


class SenderEntry(msgspec.Struct, frozen=True):
    """A sender: its last committed round and its devices."""

    id: str
    name: str
    #: The user that sent the first round. Only this user and administrators may act for the sender. If it is empty, any
    #: user may.
    user: str
    number: int
    document: Content
    #: The devices that this sender owns.
    devices: frozenset[str] = frozenset()
    conflicts: tuple[Conflict, ...] = ()
    #: Oldest first.
    history: tuple[PastRound, ...] = ()


class Catalog(msgspec.Struct, frozen=True):
    """All senders that have committed a round, keyed by id."""

    senders: Mapping[str, SenderEntry] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def owners(self) -> dict[str, str]:
        """Return the owner of each device that belongs to a sender."""
        return {device: entry.id for entry in self.senders.values() for device in entry.devices}

    def entry(self, sender: str) -> SenderEntry:
        """Return a sender's entry. Raises NoSuchSender."""
        entry = self.senders.get(sender)
        if entry is None:
            raise NoSuchSender(f"sender {sender!r} does not exist here; see SHOW SENDERS")
        return entry

    def name_of(self, sender: str) -> str:
        """Return a sender's name and id for messages."""
        entry = self.senders.get(sender)
        return f"sender {entry.name} ({sender})" if entry is not None and entry.name else f"sender {sender}"

    def with_entry(self, entry: SenderEntry) -> Catalog:
        """Return the catalog with one sender's entry replaced."""
        return Catalog({**self.senders, entry.id: entry})

    def without(self, sender: str) -> Catalog:
        """Return the catalog without one sender."""
        return Catalog({id_: entry for id_, entry in self.senders.items() if id_ != sender})


def encode_catalog(catalog: Catalog) -> bytes:
    """Return the file's bytes."""
    return encode_framed(
        _KIND, {"senders": {id_: entry_to_json(entry) for id_, entry in sorted(catalog.senders.items())}}
    )


def entry_to_json(entry: SenderEntry) -> dict[str, object]:
    """Encode an entry as JSON values."""
    return {
        "name": entry.name,
        "user": entry.user,
        "number": entry.number,
        "document": [entry.document.sha256, entry.document.size],
        "devices": sorted(entry.devices),
        "conflicts": [[c.device, c.owner, c.reason] for c in entry.conflicts],
        "history": [[p.number, p.committed_ns, p.files, p.size, p.conflicts] for p in entry.history],
    }


def decode_catalog(path: str, data: bytes) -> Catalog:
    """Decode the catalog in a file's bytes. Raises CorruptFile, StorageError 2015 if a newer Saros wrote it."""
    words = decode_framed(path, _KIND, data)
    try:
        senders = words["senders"]
        assert isinstance(senders, dict)
        return Catalog({str(id_): entry_from_json(str(id_), found) for id_, found in senders.items()})
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile(path, 0, f"not a list of senders: {error}") from error


def entry_from_json(id_: str, words: dict[str, list[list[object]]]) -> SenderEntry:
    """Decode an entry from JSON values. Raises ValueError, TypeError, KeyError."""
    sha256, size = words["document"]
    return SenderEntry(
        id_,
        str(words["name"]),
        str(words["user"]),
        int(str(words["number"])),
        Content(str(sha256), int(str(size))),
        frozenset(map(str, words["devices"])),
        tuple(Conflict(str(device), str(owner), str(reason)) for device, owner, reason in words["conflicts"]),
        tuple(PastRound(*(int(str(item)) for item in past)) for past in words["history"]),
    )


def entry_after(
    known: SenderEntry | None,
    incoming: Incoming,
    found: OwnershipDecision,
    before: Round | None,
    clock: Clock,
) -> SenderEntry:
    """Return a sender's entry for the commit of its round in progress. `before` is its last committed round."""
    round_ = incoming.round
    assert round_ is not None
    old = set() if before is None else {file.content for file in before.files()}
    fresh = {file.content for file in round_.files()} - old
    size = sum(content.size for content in fresh)
    past = PastRound(round_.number, clock.now_ns(), len(fresh), size, len(found.conflicts))
    history = (*(known.history if known is not None else ()), past)[-HISTORY_MAX:]
    user = known.user if known is not None and known.user else incoming.user
    return SenderEntry(
        round_.sender,
        incoming.name,
        user,
        round_.number,
        incoming.document,
        found.granted,
        found.conflicts,
        history,
    )


def transferred(
    catalog: Catalog, owners: Mapping[str, str], devices: Collection[str], device: str, sender: str
) -> tuple[SenderEntry, ...]:
    """Return the entries of the old owner and of the new owner, in this order, after the transfer of a device.

    The result is empty if `sender` is the owner already. `devices` are the devices that `sender` has sent. Raises
    RoundRefused.
    """
    if device not in devices:
        raise RoundRefused(f"{catalog.name_of(sender)} has not sent {device}")
    owner = owners.get(device)
    if owner is None:
        raise RoundRefused(f"{device} does not belong to a sender; drop it here, and the next round transfers it")
    if owner == sender:
        return ()
    loser, entry = catalog.senders[owner], catalog.senders[sender]
    reason = Conflict(device, catalog.name_of(sender), "it was transferred")
    left = tuple(conflict for conflict in entry.conflicts if conflict.device != device)
    return (
        replace(loser, devices=loser.devices - {device}, conflicts=(*loser.conflicts, reason)),
        replace(entry, devices=entry.devices | {device}, conflicts=left),
    )

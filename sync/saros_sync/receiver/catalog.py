"""`device_owner`: who has sent what, and whose each device is. Replaced as a whole: that is the commit of a round.

    {"senders": {"a45b...": {"number": 7, "document": ["9f...", 812], "devices": [...], ...}}}

Values; pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from saros_storage.errors import CorruptFile
from saros_sync.framing import decode_framed, encode_framed
from saros_sync.round import Content
from saros_sync.transport import Conflict

_KIND = "device_owner"
#: Rounds of a sender that are remembered.
HISTORY_MAX = 20


@dataclass(frozen=True, slots=True)
class PastRound:
    """A round that was committed: when, since the epoch by this server's clock; what it brought."""

    number: int
    committed_ns: int
    files: int
    size: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class SenderEntry:
    """What is known of a sender."""

    id: str
    name: str
    #: Who may speak for it: whoever was the first to; empty: anybody, the server had no users.
    user: str
    number: int
    document: Content
    #: Devices that are shown as this sender has them.
    devices: frozenset[str] = frozenset()
    conflicts: tuple[Conflict, ...] = ()
    #: Oldest first.
    history: tuple[PastRound, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog:
    """See the module."""

    senders: Mapping[str, SenderEntry] = field(default_factory=lambda: MappingProxyType({}))

    def owners(self) -> dict[str, str]:
        """The owner of each device that a sender has."""
        return {device: entry.id for entry in self.senders.values() for device in entry.devices}

    def name_of(self, sender: str) -> str:
        """As people are told: its name and its id."""
        entry = self.senders.get(sender)
        return f"sender {entry.name} ({sender})" if entry is not None and entry.name else f"sender {sender}"

    def with_entry(self, entry: SenderEntry) -> Catalog:
        """With another entry of one sender."""
        return Catalog({**self.senders, entry.id: entry})

    def without(self, sender: str) -> Catalog:
        """With one sender less."""
        return Catalog({id_: entry for id_, entry in self.senders.items() if id_ != sender})


def encode_catalog(catalog: Catalog) -> bytes:
    """The file's bytes."""
    return encode_framed(_KIND, {"senders": {id_: _words(entry) for id_, entry in sorted(catalog.senders.items())}})


def _words(entry: SenderEntry) -> dict[str, object]:
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
    """The inverse. Raises CorruptFile, StorageError 2015."""
    words = decode_framed(path, _KIND, data)
    try:
        senders = words["senders"]
        assert isinstance(senders, dict)
        return Catalog({str(id_): _entry(str(id_), found) for id_, found in senders.items()})
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile(path, 0, f"not a list of senders: {error}") from error


def _entry(id_: str, words: dict[str, list[list[object]]]) -> SenderEntry:
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

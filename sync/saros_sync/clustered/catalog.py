"""Who has sent what, as the meta group's notes have it: a note for each sender, `device_owner` of the cluster.

    sync/a45b...   base64 of deflated JSON: number, document, devices, conflicts, history      (`receiver.catalog`)

Who commits a round has looked at all notes, and nobody has written one meanwhile: so a device has one sender, whichever
nodes take their rounds. Thread-safe.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from saros_cluster.meta.metadata_kv import Notes
from saros_storage.base.errors import CorruptFile
from saros_sync.receiver.catalog import Catalog, SenderEntry, entry_from_json, entry_to_json
from saros_sync.round import is_sender

_PREFIX = "sync/"


def key_of(sender: str) -> str:
    """The note's key."""
    return _PREFIX + sender


def encode_entry(entry: SenderEntry) -> str:
    """The note's text."""
    words = json.dumps(entry_to_json(entry), ensure_ascii=False, separators=(",", ":"))
    return base64.b85encode(zlib.compress(words.encode())).decode()


def decode_entry(sender: str, text: str) -> SenderEntry:
    """The inverse. Raises CorruptFile."""
    try:
        return entry_from_json(sender, json.loads(zlib.decompress(base64.b85decode(text))))
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise CorruptFile(key_of(sender), 0, f"not what a sender has sent: {error}") from error


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """All senders as of a version of the notes."""

    version: int
    catalog: Catalog
    #: The sender of each device that has one.
    owners: Mapping[str, str]
    #: By sender: the note that this was read from.
    texts: Mapping[str, str] = field(repr=False, default_factory=dict)


class ClusterCatalog:
    """See the module."""

    def __init__(self, notes: Callable[[], Notes]) -> None:
        self._notes = notes
        #: Replaced as a whole; whoever is late reads the notes once more.
        self._known = CatalogVersion(0, Catalog(), {})

    @property
    def now(self) -> CatalogVersion:
        """As far as this node has heard. Raises CorruptFile."""
        notes, known = self._notes(), self._known
        if notes.version == known.version:
            return known
        texts = {key.removeprefix(_PREFIX): text for key, text in notes.texts.items() if key.startswith(_PREFIX)}
        if texts == known.texts:
            self._known = known = replace(known, version=notes.version)
            return known
        entries = {
            sender: known.catalog.senders[sender] if known.texts.get(sender) == text else decode_entry(sender, text)
            for sender, text in texts.items()
            if is_sender(sender)
        }
        catalog = Catalog(entries)
        self._known = known = CatalogVersion(notes.version, catalog, catalog.owners(), texts)
        return known

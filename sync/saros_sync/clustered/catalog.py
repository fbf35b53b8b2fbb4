"""The catalog of a cluster: one note of the meta group for each sender. It corresponds to a store's `device_owner`.

    sync/a45b...   base85 of deflated JSON: number, document, devices, conflicts, history      (`receiver.catalog`)

A commit is refused unless the committing node has read the latest version of all notes. Therefore, each device belongs
to at most one sender, even if different nodes accept the rounds. Thread-safe.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from saros_cluster.meta.metadata_kv import Notes
from saros_storage.base.errors import CorruptFile
from saros_sync.receiver.catalog import Catalog, SenderEntry, entry_from_json, entry_to_json
from saros_sync.round import is_sender

_PREFIX = "sync/"


def key_of(sender: str) -> str:
    """Return the key of a sender's note."""
    return _PREFIX + sender


def encode_entry(entry: SenderEntry) -> str:
    """Return the text of a sender's note."""
    words = json.dumps(entry_to_json(entry), ensure_ascii=False, separators=(",", ":"))
    return base64.b85encode(zlib.compress(words.encode())).decode()


def decode_entry(sender: str, text: str) -> SenderEntry:
    """Decode the entry in a note's text. Raises CorruptFile."""
    try:
        return entry_from_json(sender, json.loads(zlib.decompress(base64.b85decode(text))))
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise CorruptFile(key_of(sender), 0, f"invalid state of a sender: {error}") from error


class CatalogVersion(msgspec.Struct, frozen=True):
    """The catalog that one version of the notes contains."""

    version: int
    catalog: Catalog
    #: The sender of each synced device.
    owners: Mapping[str, str]
    #: The note of each sender.
    texts: Mapping[str, str] = msgspec.field(default_factory=dict)


class ClusterCatalog:
    """The cluster's catalog as this node knows it. It is decoded again when the notes change."""

    def __init__(self, notes: Callable[[], Notes]) -> None:
        self._notes = notes
        #: Replaced as a whole. If two threads call `now` at the same time, the notes may be decoded twice, which is
        #: harmless.
        self._known = CatalogVersion(0, Catalog(), {})

    @property
    def now(self) -> CatalogVersion:
        """The latest version that this node knows. Raises CorruptFile."""
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

"""The catalogue: texts by kind and key, for parts of the schema other than databases and series, such as templates.

    ("template", "t1")         {"aligned": false, "columns": [...]}
    ("template on", "root.a")  "t1"

The catalogue does not interpret the texts. Each entry has a number. Of several entries for one key, the entry with the
highest number applies, as for TTL rules; replicas that receive entries in different orders therefore end up with the
same entries. A removed entry stays in the catalogue with its number, but without a text. If two writers that did not
know of each other chose the same number, the entry whose text sorts last applies.

An immutable value.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from saros_storage.base.errors import UserMistake

#: Maximum number of keys that have or had an entry. It is limited because every change copies the catalogue.
ENTRIES_MAX = 10_000
#: Maximum number of characters of an entry's text.
TEXT_MAX = 1 << 20


class Entry(msgspec.Struct, frozen=True):
    """A numbered version of an entry. `text` is None if the entry was removed."""

    number: int
    text: str | None

    @property
    def order(self) -> tuple[int, bool, str]:
        """Sort key: of two versions of an entry, the one with the greater key applies."""
        return self.number, self.text is not None, self.text or ""


class Catalogue(msgspec.Struct, frozen=True):
    """The entry of each kind and key, including removed entries."""

    by_key: Mapping[tuple[str, str], Entry] = msgspec.field(default_factory=dict)

    def get(self, kind: str, key: str) -> str | None:
        """Return the text of an entry, or None if it does not exist."""
        entry = self.by_key.get((kind, key))
        return None if entry is None else entry.text

    def all_of(self, kind: str) -> list[tuple[str, str]]:
        """Return keys and texts of all entries of a kind, sorted by key."""
        found = [(k, entry.text) for (of, k), entry in self.by_key.items() if of == kind and entry.text is not None]
        return sorted(found)

    def number(self, kind: str, key: str) -> int:
        """Return the number of the key's entry; 0 if the key never had an entry."""
        entry = self.by_key.get((kind, key))
        return 0 if entry is None else entry.number

    def check(self, kind: str, key: str, text: str | None) -> None:
        """Raise UserMistake 507 if the text is too long or the catalogue is full."""
        if text is not None and len(text) > TEXT_MAX:
            raise UserMistake(f"{kind} {key} has {len(text)} characters: at most {TEXT_MAX} are allowed", code=507)
        if (kind, key) not in self.by_key and len(self.by_key) >= ENTRIES_MAX:
            raise UserMistake(
                f"the limit of {ENTRIES_MAX} {kind}s and similar entries, including dropped ones, is reached", code=507
            )

    def with_entry(self, kind: str, key: str, entry: Entry) -> Catalogue:
        """Return a catalogue with this entry added, or `self` if it already has a newer version of the entry."""
        known = self.by_key.get((kind, key))
        if known is not None and known.order > entry.order:
            return self
        return Catalogue({**self.by_key, (kind, key): entry})

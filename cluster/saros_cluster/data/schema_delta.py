"""Changes of a group's schema, as they are sent to nodes that have no replica of the group. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from saros_storage.schema import SchemaChange, decode_change, encode_change


class SchemaDelta(msgspec.Struct, frozen=True):
    """The changes of a group's schema after some entry, up to entry `index`.

    If `whole` is true, the changes apply to an empty schema. `drop` is the newest drop that the delta reflects.
    `since` has, for each database that the delta creates, the move that brought the database's series to the group, or
    0 if the group always had them. `left` is the last move away from the group after which slots were removed. If
    a whole delta lacks a database, the database may have left with that move or an earlier one.
    """

    index: int
    whole: bool
    changes: tuple[SchemaChange, ...]
    drop: int = 0
    since: Mapping[str, int] = msgspec.field(default_factory=dict)
    left: int = 0

    def to_json(self) -> list[object]:
        """Return the value in a form that JSON can encode."""
        return [
            self.index,
            self.whole,
            [encode_change(change).decode() for change in self.changes],
            self.drop,
            dict(self.since),
            self.left,
        ]

    @staticmethod
    def from_json(words: Sequence[Any]) -> SchemaDelta:
        """Return the delta that `to_json` encoded. Raises CorruptFile."""
        index, whole, texts, drop, since, left = words
        changes = tuple(decode_change(str(text).encode()) for text in texts)
        epochs = {str(database): int(epoch) for database, epoch in since.items()}
        return SchemaDelta(int(index), bool(whole), changes, int(drop), epochs, int(left))

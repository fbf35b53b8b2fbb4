"""Changes of a group's schema, for nodes that have no replica of the group. Pure: any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from saros_storage.schema import SchemaChange, decode_change, encode_change


@dataclass(frozen=True, slots=True)
class SchemaDelta:
    """What became of a group's schema: the changes since an entry, or (`whole`) all that makes it, up to `index`.

    `drop` is the newest that shows in it. `since`: of databases that are made in it, the move that brought their series
    to the group; 0 if it always had them. `left`: the last move that took something from the group, which it has let
    go of: a database of which `whole` news do not tell may have gone with it.
    """

    index: int
    whole: bool
    changes: tuple[SchemaChange, ...]
    drop: int = 0
    since: Mapping[str, int] = field(default_factory=dict)
    left: int = 0

    def to_json(self) -> list[object]:
        """As values that JSON knows."""
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
        """The inverse. Raises CorruptFile."""
        index, whole, texts, drop, since, left = words
        changes = tuple(decode_change(str(text).encode()) for text in texts)
        epochs = {str(database): int(epoch) for database, epoch in since.items()}
        return SchemaDelta(int(index), bool(whole), changes, int(drop), epochs, int(left))

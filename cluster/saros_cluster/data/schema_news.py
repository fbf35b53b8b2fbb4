"""What became of a group's schema, for nodes that keep none of the group. Pure: any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saros_storage.schema import SchemaChange, decode_change, encode_change


@dataclass(frozen=True, slots=True)
class SchemaNews:
    """What became of a group's schema: the changes since an entry, or (`whole`) all that makes it, up to `index`.

    `drop` is the newest that shows in it.
    """

    index: int
    whole: bool
    changes: tuple[SchemaChange, ...]
    drop: int = 0

    def words(self) -> list[object]:
        """As values that JSON knows."""
        return [self.index, self.whole, [encode_change(change).decode() for change in self.changes], self.drop]

    @staticmethod
    def of_words(words: Sequence[Any]) -> SchemaNews:
        """The inverse. Raises CorruptFile."""
        index, whole, texts, drop = words
        changes = tuple(decode_change(str(text).encode()) for text in texts)
        return SchemaNews(int(index), bool(whole), changes, int(drop))

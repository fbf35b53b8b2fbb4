"""Notes that the meta group stores for features built on the cluster: short texts with keys, never interpreted.

    put "sync/3f5c..." = "..." as of 41     entry 41 changed the notes last: accepted
                                as of 41     entry 57 has changed them since: refused (2064); read again and retry

A write succeeds only if the writer has read the latest version of all notes. Writers can therefore enforce a rule
across several notes, such as one sender for each device, although the meta group does not know the rule. Each step of
growing or shrinking the cluster counts as a change of the notes, so a writer also knows which nodes own the data to
which its note refers. All nodes have all notes in memory, and every snapshot of the meta group contains them, so notes
must be small. Pure; values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from saros_storage.base.errors import UserMistake

#: The error code of a refused write: another writer was faster.
CHANGED = 2064
#: The limit of the total number of characters in all notes: the notes are part of the meta group's snapshot, which is
#: one message.
CHARS_MAX = 8 << 20


class PutNotes(msgspec.Struct, frozen=True):
    """Write several notes at once. An empty text removes a note.

    `version` is the version of the notes that the writer has read.
    """

    version: int
    texts: Mapping[str, str]


class Notes(msgspec.Struct, frozen=True):
    """All notes. `version` is the last entry that changed the notes or the topology."""

    version: int = 0
    texts: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def put(self, notes: PutNotes, index: int) -> Notes:
        """Return the notes after a write by entry `index`. Raises UserMistake."""
        if notes.version != self.version:
            raise UserMistake(
                f"the notes were changed concurrently (now version {self.version}); read them again", code=CHANGED
            )
        texts = {key: text for key, text in {**self.texts, **notes.texts}.items() if text}
        chars = sum(len(key) + len(text) for key, text in texts.items())
        if chars > CHARS_MAX:
            raise UserMistake(f"notes of {chars} characters exceed the limit of {CHARS_MAX}", code=2003)
        return Notes(index, MappingProxyType(texts))

    def as_of(self, index: int) -> Notes:
        """Return the same notes with another version, so that writers must read the notes again."""
        return replace(self, version=index)

    def to_json(self) -> list[object]:
        """Return JSON values."""
        return [self.version, dict(self.texts)]

    @staticmethod
    def from_json(words: object) -> Notes:
        """Parse the values of `to_json`. Raises ValueError, TypeError."""
        if not isinstance(words, list) or len(words) != 2 or not isinstance(words[1], dict):
            raise TypeError("expected notes")
        return Notes(int(words[0]), MappingProxyType({str(key): str(text) for key, text in words[1].items()}))

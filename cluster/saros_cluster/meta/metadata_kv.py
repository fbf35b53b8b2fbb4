"""Notes that the meta group keeps for clients built on the cluster: short texts by key, which it does not interpret.

    put "sync/3f5c..." = "..." as of 41     the notes were changed last by entry 41: taken
                                as of 41     by now it is entry 57: refused (2064), look and write anew

So a writer has read all notes, and none has changed since: a rule across notes (a device has one sender) holds without
the meta group knowing it. A step of growing or shrinking counts as a change of notes, so a writer also knows the
current owners of what its note is about. All nodes hold all notes in memory, and every snapshot of the meta group
contains them: keep them small. Pure; values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from saros_storage.base.errors import UserMistake

#: Code of the refusal: somebody else was faster.
CHANGED = 2064
#: Characters of all notes together: they go with the meta group's snapshot, in one message.
CHARS_MAX = 8 << 20


@dataclass(frozen=True, slots=True)
class PutNotes:
    """Write notes, all at once; an empty text takes one away.

    `version`: that of the notes, as far as their writer knows.
    """

    version: int
    texts: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Notes:
    """All notes; entry `version` changed them last, or the topology."""

    version: int = 0
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def put(self, notes: PutNotes, index: int) -> Notes:
        """With the notes that entry `index` brings. Raises UserMistake."""
        if notes.version != self.version:
            raise UserMistake(f"notes were written meanwhile: they are as of {self.version} now", code=CHANGED)
        texts = {key: text for key, text in {**self.texts, **notes.texts}.items() if text}
        chars = sum(len(key) + len(text) for key, text in texts.items())
        if chars > CHARS_MAX:
            raise UserMistake(f"notes of {chars} characters are more than the cluster keeps ({CHARS_MAX})", code=2003)
        return Notes(index, MappingProxyType(texts))

    def as_of(self, index: int) -> Notes:
        """The same, to be looked at anew."""
        return replace(self, version=index)

    def to_json(self) -> list[object]:
        """As values that JSON knows."""
        return [self.version, dict(self.texts)]

    @staticmethod
    def from_json(words: object) -> Notes:
        """The inverse. Raises ValueError, TypeError."""
        if not isinstance(words, list) or len(words) != 2 or not isinstance(words[1], dict):
            raise TypeError("notes are expected")
        return Notes(int(words[0]), MappingProxyType({str(key): str(text) for key, text in words[1].items()}))

"""The disk of a running store while another process reads it.

The store's operations happen between the reads of that process. The number of operations between two reads is random.
Reads are not atomic: if a read returns several bytes of a file, the last of them may be newer than the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from storage.crash_disk import CrashDisk, Picture
from storage.store_crashes import Note
from storage.store_model import State


class LiveDisk(CrashDisk):
    """A disk that shows recorded pictures one after the other as it is read, beginning with number `start`.

    A write to the disk fails the test.
    """

    def __init__(self, pictures: Sequence[tuple[Picture, Note]], start: int, chance: Random) -> None:
        super().__init__()
        self._told = pictures
        self._chance = chance
        #: The average number of operations between two reads.
        self._pace = chance.choice((0.05, 0.3, 1, 4))
        self._first = self._at = start
        self.become_copy(pictures[start][0].disk)

    def _go_on(self) -> None:
        steps = min(int(self._chance.expovariate(1 / self._pace)), len(self._told) - 1 - self._at)
        if steps:
            self._at += steps
            self.become_copy(self._told[self._at][0].disk)

    @property
    def allowed(self) -> list[State]:
        """Return every state that the store may have had at some moment since the first read."""
        notes = [note for _, note in self._told[self._first : self._at + 1]]
        return [state for note in notes for state in note.states[note.acknowledged :]]

    def map(self, path: str) -> memoryview:
        self._go_on()
        return super().map(path)

    def read(self, path: str, offset: int, count: int) -> bytes:
        self._go_on()
        older = super().read(path, offset, count)
        self._go_on()
        cut = self._chance.randrange(count + 1)
        return older[:cut] + super().read(path, offset, count)[cut:]

    def list(self, path: str) -> list[str]:
        self._go_on()
        return super().list(path)

    def exists(self, path: str) -> bool:
        self._go_on()
        return super().exists(path)

    def size(self, path: str) -> int:
        self._go_on()
        return super().size(path)

    def _failure_of(self, kind: str) -> int:
        raise AssertionError(f"a snapshot has done this to the disk: {kind}")

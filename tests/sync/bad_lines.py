"""A link that loses, repeats, delays and damages requests at random.

lost           the request never arrives
answer lost    the request arrives and its reply is lost; the request arrives once more later
twice          the request arrives twice, and once more later
damaged        a byte of a chunk is changed
overtaken      a chunk arrives after requests that were sent later
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from saros_sync.errors import RoundRefused, Unreachable
from saros_sync.round import Content
from saros_sync.transport import Answer, BeginReply, Transport

T = TypeVar("T")


class BadLine:
    """A faulty link, which implements `Transport`. It has no faults once `fair` is set."""

    def __init__(self, line: Transport, chance: Random, badness: float = 0.3) -> None:
        self._line = line
        self._chance = chance
        self._badness = badness
        #: Requests that can arrive once more later.
        self._late: list[Callable[[], object]] = []
        self.fair = False
        self.events: dict[str, int] = {}

    def begin(self, sender: str, name: str, number: int, document: Content) -> BeginReply:
        return self._pass(lambda: self._line.begin(sender, name, number, document))

    def chunk(self, sender: str, number: int, sha256: str, offset: int, crc32: int, data: memoryview) -> Answer:
        sent = data
        if data and self._is("damaged", self._badness / 3):
            place = self._chance.randrange(len(data))
            damaged = bytearray(data)
            damaged[place] ^= 1 << self._chance.randrange(8)
            sent = memoryview(damaged)

        def handed_over() -> int:
            return self._line.chunk(sender, number, sha256, offset, crc32, sent)()

        if self._is(
            "overtaken", self._badness / 2
        ):  # the chunk arrives when its reply is awaited, after other requests
            return lambda: self._pass(handed_over)
        have = self._pass(handed_over)
        return lambda: have

    def commit(self, sender: str, number: int) -> BeginReply:
        return self._pass(lambda: self._line.commit(sender, number))

    def close(self) -> None:
        self._line.close()

    def _pass(self, question: Callable[[], T]) -> T:
        while self._late and self._is("late", 0.5):
            try:
                self._late.pop(self._chance.randrange(len(self._late)))()
            except RoundRefused:  # the reply is lost
                self.events["refused"] = self.events.get("refused", 0) + 1
        if self._is("lost", self._badness / 3):
            raise Unreachable("the line is cut")
        answer = question()
        if self._is("twice", self._badness / 3):
            answer = question()
            self._late.append(question)
        if self._is("answer lost", self._badness / 3):
            self._late.append(question)
            raise Unreachable("the line was cut")
        return answer

    def _is(self, event: str, probability: float) -> bool:
        happens = not self.fair and self._chance.random() < probability
        self.events[event] = self.events.get(event, 0) + happens
        return happens

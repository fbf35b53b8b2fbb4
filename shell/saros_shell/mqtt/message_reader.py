"""Conversion of messages to rows.

A message without a time gets the time of its arrival. Two messages with the same series never get the same time,
because the later message would overwrite the earlier message. The later message gets the next tick instead. A message
that is redelivered, on the same connection or after a reconnection, keeps its time. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from saros_shell.mqtt.broker_connection import Message
from saros_shell.mqtt.payload_formats import Parser, Row
from saros_shell.mqtt.routes import BadMessage, Router
from saros_storage.base.paths import unquote_node

#: The maximum number of series whose last time of arrival is stored.
_SERIES_KEPT = 100_000
_DATABASE_NODES = 2


class ArrivalClock:
    """A clock for times of arrival in the database's unit. For each series, these times strictly increase."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._last: dict[tuple[str, str], int] = {}

    def next(self, series: Collection[tuple[str, str]]) -> int:
        """Return the time of a message that arrives now and has values of these series."""
        now = self._now()
        if len(self._last) >= _SERIES_KEPT:
            self._last = {known: last for known, last in self._last.items() if last >= now}
        ticks = max(now, *(self._last.get(one, now - 1) + 1 for one in series))
        for one in series:
            self._last[one] = ticks
        return ticks


class Lines(msgspec.Struct, frozen=True):
    """The lines of a message, the database that stores them, and the time for lines that have no time."""

    message: int
    database: str
    text: bytes
    time_ns: int


class ReadMessages(msgspec.Struct):
    """Rows or lines of messages, each with the number of its message, and the reasons for refusals by message."""

    rows: list[tuple[int, Row]] = msgspec.field(default_factory=list)
    lines: list[Lines] = msgspec.field(default_factory=list)
    refusals: dict[int, list[str]] = msgspec.field(default_factory=dict)

    def refuse(self, message: int, reason: str) -> None:
        """Record that a message, or a part of it, cannot be written."""
        reasons = self.refusals.setdefault(message, [])
        if reason not in reasons:
            reasons.append(reason)


class MessageReader(msgspec.Struct, frozen=True):
    """Reads messages according to routes and a payload format."""

    router: Router
    parse: Parser
    clock: ArrivalClock

    def read(self, messages: Iterable[Message]) -> ReadMessages:
        """Return the rows of the messages, with refusals."""
        found = ReadMessages()
        for number, message in enumerate(messages):
            try:
                parsed = self.parse(message.payload, self.router.path_of(message.topic))
            except BadMessage as error:
                found.refuse(number, str(error))
                continue
            for problem in parsed.problems:
                found.refuse(number, problem)
            for row in parsed.rows:
                if row.time is None:
                    row.time = self._arrival(message, row)
                found.rows.append((number, row))
        return found

    def _arrival(self, message: Message, row: Row) -> int:
        if message.arrival is None:
            message.arrival = self.clock.next([(row.device, name) for name in row.values])
        return message.arrival


class LineReader(msgspec.Struct, frozen=True):
    """A reader of payloads in line protocol. `tick_ns` is the length of the database's unit in nanoseconds."""

    router: Router
    clock: ArrivalClock
    tick_ns: int

    def read(self, messages: Iterable[Message]) -> ReadMessages:
        """Return the lines of the messages, with refusals."""
        found = ReadMessages()
        for number, message in enumerate(messages):
            try:
                database = database_of(self.router.path_of(message.topic))
            except BadMessage as error:
                found.refuse(number, str(error))
                continue
            if message.arrival is None:
                message.arrival = self.clock.next([(database, "")])
            found.lines.append(Lines(number, database, message.payload, message.arrival * self.tick_ns))
        return found


def database_of(path: Sequence[str] | None) -> str:
    """Return the name of the database at a path. Raises BadMessage if it is not the path of a database."""
    if path is None or len(path) != _DATABASE_NODES:
        raise BadMessage("the path is not that of a database: root and one node")
    return unquote_node(path[1])

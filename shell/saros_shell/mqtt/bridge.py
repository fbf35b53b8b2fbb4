"""The loop of `saros mqtt`: receives messages, writes them, sets refused messages aside, and acknowledges all of them.

    receive -> read -> write, repeated during an outage -> dead letters, synced -> acknowledge
       ^                                                                                      │
       └──────────────────────────────────────────────────────────────────────────────────────┘

A message is acknowledged once its points are durable. If the message is refused, its dead letter must be durable, too.
Therefore, after a crash of any part, the broker redelivers every message that is not yet durable. Messages that arrive
during a write form the next batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Protocol

import msgspec

import saros
from saros_shell.mqtt.broker_connection import BrokerConnection, Message
from saros_shell.mqtt.dead_letters import DeadLetter, DeadLetterFile
from saros_shell.mqtt.message_reader import ReadMessages

#: Pauses between attempts to write.
_PAUSE_S, _PAUSE_MAX_S = 0.5, 30.0


class BatchLimits(msgspec.Struct, frozen=True):
    """The maximum messages and payload bytes of a batch, and the seconds for which messages are collected."""

    messages: int
    payload_bytes: int
    linger_s: float


class Counts(msgspec.Struct):
    """The numbers of processed messages, of their points, and of messages refused in whole or in part."""

    messages: int = 0
    points: int = 0
    refused: int = 0


class Reader(Protocol):
    """A parser of messages with one payload format."""

    def read(self, messages: Sequence[Message], /) -> ReadMessages:
        """Return the rows or lines of the messages."""
        ...


class Writer(Protocol):
    """A writer of the rows or lines that a reader returns."""

    def write(self, messages: ReadMessages, /) -> int:
        """Write rows or lines, and add refusals to `messages`. Return the number of points. Raises DatabaseError."""
        ...


class NotWritten(Exception):
    """Messages could not be written before the command ended. The broker still has these messages."""


class Bridge:
    """The loop between a broker and a database.

    The loop calls `report` with messages about outages, and `progress` with the counts after each batch.
    """

    def __init__(
        self,
        broker: BrokerConnection,
        reader: Reader,
        writer: Writer,
        dead_letters: DeadLetterFile,
        limits: BatchLimits,
        *,
        report: Callable[[str], None],
        progress: Callable[[Counts], None],
    ) -> None:
        self.counts = Counts()
        self._broker = broker
        self._reader = reader
        self._writer = writer
        self._dead_letters = dead_letters
        self._limits = limits
        self._report = report
        self._progress = progress

    def run(self, stopped: Event) -> None:
        """Process messages until `stopped` is set, and finally the messages that have already arrived by then.

        Raises ClientIdInUse, NotWritten.
        """
        limits = self._limits
        while True:
            is_last = stopped.is_set()
            messages = self._broker.receive(limits.messages, limits.payload_bytes, 0.0 if is_last else limits.linger_s)
            if messages:
                self._move(messages, stopped)
            self._progress(self.counts)
            if is_last:
                return

    def _move(self, messages: Sequence[Message], stopped: Event) -> None:
        found = self._reader.read(messages)
        points = self._until_done(lambda: self._write(messages, found), len(messages), stopped)
        self._broker.acknowledge(messages)
        self.counts.messages += len(messages)
        self.counts.points += points
        self.counts.refused += len(found.refusals)

    def _write(self, messages: Sequence[Message], found: ReadMessages) -> int:
        points = self._writer.write(found) if found.rows or found.lines else 0
        if found.refusals:
            self._dead_letters.append(
                [
                    DeadLetter(messages[number].topic, messages[number].payload, "; ".join(reasons))
                    for number, reasons in sorted(found.refusals.items())
                ]
            )
        return points

    def _until_done(self, write: Callable[[], int], count: int, stopped: Event) -> int:
        """Call `write` until it succeeds. Raises NotWritten if the command is stopped during an outage."""
        pause_s, failed = _PAUSE_S, ""
        while True:
            try:
                points = write()
            except (saros.DatabaseError, OSError) as error:  # an outage, since the writer handles refusals
                said = str(error)
            else:
                if failed:
                    self._report(f"writing works again after: {failed}")
                return points
            if said != failed:
                self._report(f"cannot write: {said}; retrying {count} messages until it works")
            failed = said
            if stopped.wait(pause_s):
                raise NotWritten(f"{count} messages were not written: {said}; the broker will redeliver them")
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)

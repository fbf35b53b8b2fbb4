"""Writes payloads of line protocol together, and sets aside the payloads that the database refuses.

    payloads of a database --joined by newlines--> write_lines
                              └ refused: each half, down to single payloads (refusal of payloads that fail alone)

A payload that has lines without a time is written separately, with the time of its arrival. In an outage
(DatabaseError), the whole batch fails, and the caller must write it again later. Writing lines twice has no further
effect. Not thread-safe.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import saros
from saros_shell.mqtt.batch_writer import is_refusal
from saros_shell.mqtt.message_reader import Lines, ReadMessages

_TIME = re.compile(rb"-?[0-9]+")


class LineWriter:
    """A writer of payloads of line protocol."""

    def __init__(self, connection: saros.Connection, precision: str) -> None:
        """Make a writer of lines whose times are in the unit `precision`."""
        self._connection = connection
        self._precision = precision

    def write(self, messages: ReadMessages) -> int:
        """Write the lines, and add refusals to `messages`. Return the number of points.

        Raises DatabaseError in an outage. Some of the lines may be written nevertheless.
        """
        joined: defaultdict[str, list[Lines]] = defaultdict(list)
        points = 0
        for lines in messages.lines:
            if is_joinable(lines.text):
                joined[lines.database].append(lines)
            else:
                points += self._write([lines], messages)
        return points + sum(self._write(found, messages) for found in joined.values())

    def _write(self, found: Sequence[Lines], messages: ReadMessages) -> int:
        """Write payloads of one database. If they are refused, write each half. Return the number of points."""
        try:
            return self._connection.write_lines(
                b"\n".join([lines.text for lines in found]),
                database=found[0].database,
                precision=self._precision,
                time_ns=found[0].time_ns,
            )
        except saros.Error as error:
            if not is_refusal(error):
                raise
            if len(found) == 1:
                messages.refuse(found[0].message, str(error))
                return 0
        middle = len(found) // 2
        return self._write(found[:middle], messages) + self._write(found[middle:], messages)


def is_joinable(text: bytes) -> bool:
    """Return whether a payload can be joined with others: all its lines have times, and no string is unterminated."""
    return text.count(b'"') % 2 == 0 and all(map(_has_time, text.split(b"\n")))


def _has_time(line: bytes) -> bool:
    """Return whether a line ends with a time, or is a comment or empty."""
    line = line.strip()
    before, _, last = line.rpartition(b" ")
    return not line or line.startswith(b"#") or (bool(before) and _TIME.fullmatch(last) is not None)

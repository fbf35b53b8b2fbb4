"""Clock marks in a store's log, so that a restore can stop at a moment in time.

    records   mark 10:00:00 | write | write | mark 10:00:01 | write ...

A mark is logged before an entry if the last mark is at least a second old. Entries after the mark were logged at its
time or later, entries before it at its time or earlier. Nothing else reads marks. Pure: any thread.
"""

from __future__ import annotations

import struct

from saros_storage.log.record import Record

#: The log's kind number for these records.
CLOCK_MARK = 2
#: Age of the last mark at which the next one is logged.
MARK_NS = 1_000_000_000
_TIME = struct.Struct("<q")


def encode_mark(now_ns: int) -> bytes:
    """Encode a mark's payload; `now_ns` since the epoch."""
    return _TIME.pack(now_ns)


def time_of(record: Record) -> int | None:
    """Return the time of a mark in nanoseconds since the epoch; None if the record is not a mark."""
    if record.kind != CLOCK_MARK or len(record.payload) != _TIME.size:
        return None
    return int(_TIME.unpack(record.payload)[0])

"""Clock marks in a store's log, so that a restore can stop at a moment in time.

    records   mark 10:00:00 | write | write | mark 10:00:01 | write ...

A mark is logged before an entry if the last mark is at least a second old. Entries after a mark were logged at the
mark's time or later, entries before the mark at that time or earlier. Only a restore reads marks. Pure: any thread.
"""

from __future__ import annotations

import struct

from saros_storage.log.record import Record

#: The log's kind number for these records.
CLOCK_MARK = 2
#: The next mark is logged when the last mark has at least this age.
MARK_NS = 1_000_000_000
_TIME = struct.Struct("<q")


def encode_mark(now_ns: int) -> bytes:
    """Encode a mark's payload; `now_ns` is the time in nanoseconds since the epoch."""
    return _TIME.pack(now_ns)


def time_of(record: Record) -> int | None:
    """Return the time of a mark in nanoseconds since the epoch; None if the record is not a mark."""
    if record.kind != CLOCK_MARK or len(record.payload) != _TIME.size:
        return None
    return int(_TIME.unpack(record.payload)[0])

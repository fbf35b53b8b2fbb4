"""Marks of time in a store's log: so that a backup's log can be cut at a moment.

    records   mark 10:00:00 | write | write | mark 10:00:01 | write ...

A mark is logged before an entry if the last one is a second old. It says when the entries behind it were logged, at the
earliest; those before it were, at the latest. Nothing else looks at marks. Pure: any thread.
"""

from __future__ import annotations

import struct

from saros_storage.log.record import Record

#: The kind of these records.
CLOCK_MARK = 2
#: So old is a mark when the next one comes.
MARK_NS = 1_000_000_000
_TIME = struct.Struct("<q")


def encode_mark(now_ns: int) -> bytes:
    """A mark's payload; `now_ns` since the epoch."""
    return _TIME.pack(now_ns)


def time_of(record: Record) -> int | None:
    """Nanoseconds since the epoch that a record says; None: it is no mark."""
    if record.kind != CLOCK_MARK or len(record.payload) != _TIME.size:
        return None
    return int(_TIME.unpack(record.payload)[0])

"""Slots. Data is placed by <database, time slice>, which is hashed to one of a fixed number of slots.

The hash is part of the format of stored data, so it must never change, and must be the same on all machines. Pure: any
thread.
"""

from __future__ import annotations

import struct

import mmh3

#: The number of slots of a cluster, which is fixed when the cluster is created.
SLOTS = 10_000
#: The code of the error for a slot that the receiver does not own, or does not own yet: the sender must read the table
#: again.
MOVED = 2026
_SLICE = struct.Struct("<q")


def slot_of(database: str, slice_: int, slots: int = SLOTS) -> int:
    """Return the slot of a database's slice: murmur3 (x86, 32 bit, seed 0) of name, a zero byte, slice as int64."""
    key = database.encode() + b"\0" + _SLICE.pack(slice_)
    return mmh3.hash(key, signed=False) % slots

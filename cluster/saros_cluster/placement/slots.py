"""Slots: data is placed by <database, slice of time>, hashed to one of a fixed number of slots.

The hash is a part of the data's format: it must never change, on any machine. Pure: any thread.
"""

from __future__ import annotations

import struct

import mmh3

#: Slots of a cluster; fixed when the cluster is made.
SLOTS = 10_000
#: Code of the error for a slot that is not, or not yet, where the request went: look at the table again.
MOVED = 2026
_SLICE = struct.Struct("<q")


def slot_of(database: str, slice_: int, slots: int = SLOTS) -> int:
    """The slot of a database's slice: murmur3 (x86, 32 bit, seed 0) of name, zero byte, and slice as int64."""
    key = database.encode() + b"\0" + _SLICE.pack(slice_)
    return mmh3.hash(key, signed=False) % slots

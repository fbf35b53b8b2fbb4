"""The parts of a client protocol that do not depend on how it frames messages: an insert's columns, and limits.

An insert is a head, and an Arrow IPC stream of one batch: the times, then the columns. The head has the write's number
(0: none), whether the device is aligned (0: as it is, 1: yes, 2: no), and the device. Integers are little-endian.

    sequence u64 | aligned u8 | 3 zeros | device_bytes u32 | device (UTF-8) | zeros up to a multiple of 8 | stream

The stream, except for the values, is thus the same for all inserts of a shape: both sides keep what they derive from
it. Pure data: any thread.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: Largest message either way: a batch of rows, or of columns; the driver splits what is longer.
MESSAGE_BYTES_MAX = 16 << 20
_HEAD = struct.Struct("<QB3sI")
_ZEROS = bytes(3)
_ALIGNED = (None, True, False)


@dataclass(frozen=True, slots=True)
class InsertHead:
    """The head of an insert."""

    device: str
    #: None: as the device is.
    aligned: bool | None
    #: The number among the client's writes; 0: none.
    sequence: int


def encode_insert_head(device: bytes, sequence: int, *, aligned: bool | None) -> bytes:
    """Return the head of an insert."""
    fixed = _HEAD.pack(sequence, _ALIGNED.index(aligned), _ZEROS, len(device))
    return fixed + device + bytes(-len(device) % 8)


def decode_insert_head(insert: bytes | memoryview) -> tuple[InsertHead, int]:
    """Return the head of an insert, and the number of its bytes. Raises ValueError."""
    if len(insert) < _HEAD.size:
        raise ValueError(f"an insert of {len(insert)} bytes")
    sequence, aligned, zeros, device_bytes = _HEAD.unpack_from(insert)
    device_end = _HEAD.size + device_bytes
    end = device_end + -device_bytes % 8
    if aligned >= len(_ALIGNED) or zeros != _ZEROS or end > len(insert):
        raise ValueError(f"a head of an insert that is none: {bytes(insert[: _HEAD.size])!r}")
    device = str(insert[_HEAD.size : device_end], "utf-8")
    return InsertHead(device, _ALIGNED[aligned], sequence), end

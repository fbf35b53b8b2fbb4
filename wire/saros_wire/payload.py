"""Encodes an insert's columns, independently of frames, and defines the size limit of messages. Pure data: any thread.

An insert is a head, and an Arrow IPC stream of one batch: the times, then the columns. The head has the sequence number
of the write (0: none), the alignment (0: that of the device, 1: aligned, 2: not aligned), and the device. Integers are
little-endian.

    sequence u64 | aligned u8 | 3 zeros | device_bytes u32 | device (UTF-8) | zeros up to a multiple of 8 | stream

If two inserts have the same columns and the same number of rows, their streams differ only in the values. Therefore,
both sides cache data that they derive from the other parts of a stream.
"""

from __future__ import annotations

import struct

import msgspec

#: The maximum size of a message in either direction. A message may contain a batch of rows or of columns. The driver
#: splits longer inserts.
MESSAGE_BYTES_MAX = 16 << 20
_HEAD = struct.Struct("<QB3sI")
_ZEROS = bytes(3)
_ALIGNED = (None, True, False)


class InsertHead(msgspec.Struct, frozen=True):
    """The head of an insert."""

    device: str
    #: If None, the alignment of the device is used.
    aligned: bool | None
    #: The sequence number of the write, or 0 if it has none.
    sequence: int


def encode_insert_head(device: bytes, sequence: int, *, aligned: bool | None) -> bytes:
    """Return the head of an insert."""
    fixed = _HEAD.pack(sequence, _ALIGNED.index(aligned), _ZEROS, len(device))
    return fixed + device + bytes(-len(device) % 8)


def decode_insert_head(insert: bytes | memoryview) -> tuple[InsertHead, int]:
    """Return the head of an insert, and its size in bytes. Raises ValueError."""
    if len(insert) < _HEAD.size:
        raise ValueError(f"an insert of {len(insert)} bytes")
    sequence, aligned, zeros, device_bytes = _HEAD.unpack_from(insert)
    device_end = _HEAD.size + device_bytes
    end = device_end + -device_bytes % 8
    if aligned >= len(_ALIGNED) or zeros != _ZEROS or end > len(insert):
        raise ValueError(f"not the head of an insert: {bytes(insert[: _HEAD.size])!r}")
    device = str(insert[_HEAD.size : device_end], "utf-8")
    return InsertHead(device, _ALIGNED[aligned], sequence), end

"""A tablet as one frame of bytes: what the log holds and what the MemTable looks into.

    u32 rows | u32 names' bytes | names | times | per column: [mask] values            every part padded to 8 bytes
    names     u8 aligned, u16 columns, u16 + device, per column: u8 type, u8 masked, u16 + measurement
    values    fixed width: the array; text: int32 offsets from 0, then the bytes          little-endian

Decoding copies nothing: the columns are views of the frame, so the frame must stay alive and unchanged. Names are
packed once per shape of tablet and remembered, since a device sends the same shape again and again.

Pure: any thread.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np

from saros_storage.block import Column, TextArray
from saros_storage.errors import CorruptFile
from saros_storage.tablet import Tablet
from saros_storage.types import NUMPY_DTYPE, BoolArray, DataType, Int64Array

_HEAD = struct.Struct("<II")
_NAME_BYTES_MAX = 0xFFFF
_SHAPES_CACHED = 16_384
_PADDING = tuple(bytes(-size % 8) for size in range(8))

#: (device, aligned, measurements, types, masked)
Shape = tuple[str, bool, tuple[str, ...], tuple[DataType, ...], tuple[bool, ...]]


def encode_tablet(tablet: Tablet) -> bytes:
    """The frame; one copy of the tablet's arrays."""
    types = tuple(c.type for c in tablet.columns)
    masked = tuple(c.valid is not None for c in tablet.columns)
    names = _pack_names((tablet.device, tablet.aligned, tablet.measurements, types, masked))
    parts: list[bytes | memoryview] = [_HEAD.pack(len(tablet.times), len(names)), names, _bytes_of(tablet.times)]
    for column in tablet.columns:
        if column.valid is not None:
            _add(parts, _bytes_of(column.valid))
        if isinstance(column.values, TextArray):
            offsets = column.values.offsets
            start, stop = int(offsets[0]), int(offsets[-1])
            _add(parts, _bytes_of(offsets - offsets[0] if start else offsets))
            _add(parts, _bytes_of(column.values.data[start:stop]))
        else:
            _add(parts, _bytes_of(column.values))
    return b"".join(parts)


def _bytes_of(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")


def _add(parts: list[bytes | memoryview], part: memoryview) -> None:
    parts.append(part)
    if part.nbytes % 8:
        parts.append(_PADDING[part.nbytes % 8])


@lru_cache(_SHAPES_CACHED)
def _pack_names(shape: Shape) -> bytes:
    device, aligned, measurements, types, masked = shape
    packed = struct.pack("<BH", aligned, len(measurements)) + _pack_text(device)
    for name, type_, mask in zip(measurements, types, masked, strict=True):
        packed += struct.pack("<BB", type_, mask) + _pack_text(name)
    return packed + _PADDING[len(packed) % 8]


def _pack_text(text: str) -> bytes:
    raw = text.encode()
    assert len(raw) <= _NAME_BYTES_MAX
    return struct.pack("<H", len(raw)) + raw


def decode_tablet(frame: memoryview) -> Tablet:
    """The tablet whose columns are views of `frame`. Raises CorruptFile if the frame is none."""
    try:
        return _decode(frame)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise CorruptFile("log", 0, f"not a tablet: {error}") from error


def _decode(frame: memoryview) -> Tablet:
    rows, size = _HEAD.unpack_from(frame)
    position = _HEAD.size + size
    device, aligned, measurements, types, masked = _unpack_names(bytes(frame[_HEAD.size : position]))
    times: Int64Array = np.frombuffer(frame, np.int64, rows, position)
    position += times.nbytes
    columns = []
    for type_, mask in zip(types, masked, strict=True):
        valid: BoolArray | None = None
        if mask:
            valid = np.frombuffer(frame, np.bool_, rows, position)
            position += _padded(rows)
        if type_.is_text:
            offsets = np.frombuffer(frame, np.int32, rows + 1, position)
            position += _padded(offsets.nbytes)
            text = TextArray(offsets, np.frombuffer(frame, np.uint8, int(offsets[-1]), position))
            position += _padded(int(offsets[-1]))
            columns.append(Column(type_, text, valid))
        else:
            values = np.frombuffer(frame, NUMPY_DTYPE[type_], rows, position)
            position += _padded(values.nbytes)
            columns.append(Column(type_, values, valid))
    if position != len(frame):
        raise ValueError(f"{len(frame)} bytes where {position} are needed")
    return Tablet(device, measurements, times, tuple(columns), aligned)


def _padded(size: int) -> int:
    return (size + 7) & ~7


@lru_cache(_SHAPES_CACHED)
def _unpack_names(packed: bytes) -> Shape:
    aligned, count = struct.unpack_from("<BH", packed)
    device, position = _unpack_text(packed, 3)
    measurements, types, masked = [], [], []
    for _ in range(count):
        type_, mask = struct.unpack_from("<BB", packed, position)
        name, position = _unpack_text(packed, position + 2)
        measurements.append(name)
        types.append(DataType(type_))
        masked.append(bool(mask))
    return device, bool(aligned), tuple(measurements), tuple(types), tuple(masked)


def _unpack_text(packed: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<H", packed, position)
    raw = packed[position + 2 : position + 2 + size]
    if len(raw) < size:
        raise ValueError("a name is cut off")
    return raw.decode(), position + 2 + size

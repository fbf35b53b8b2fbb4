"""A tablet as one frame of bytes. Decoding does not copy: the MemTable reads the same bytes that the log stores.

    frame    u32 head bytes | u32 rows | head | u64[columns] shape | times i64[rows] | column | column ...
    head     u16 columns | u8 aligned | u8 0 | u16 device bytes | u16 0 | device | (u8 type | u16 name bytes | name)*
    shape    bit 0: the column has a mask; other bits: size of its text data in bytes
    column   numbers[rows], or text: i32[rows + 1] offsets, then the bytes; then the mask, if any, one byte per row

Everything is little-endian. The head, the times and every array are padded to 8 bytes, so that the arrays are aligned
whenever the frame starts at a multiple of 8. The part of a head after the device is the same for all tablets with the
same columns; the results of encoding and parsing this part are cached. A frame has at most 65,535 columns and 1 GiB,
the limit of a log record.

The log protects the integrity of the frame with a checksum; only lengths are checked here. Pure: any thread.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from saros_storage.base.block import Column, TextArray, Values
from saros_storage.base.errors import CorruptFile, UserMistake
from saros_storage.base.paths import check_length
from saros_storage.base.tablet import Tablet
from saros_storage.base.types import NUMPY_DTYPE, DataType, Int64Array, NumericArray
from saros_storage.log.record import check_payload
from saros_storage.scan.snapshot import DeviceSpan

assert sys.byteorder == "little", "frames are views of memory: Saros runs on little-endian machines"

_SIZES = struct.Struct("<II")
_HEAD = struct.Struct("<HBBHH")
#: Offset of the device's path in a frame.
DEVICE_AT = _SIZES.size + _HEAD.size
_NAME = struct.Struct("<BH")
_PADDING = tuple(bytes(n) for n in range(8))
_INT64 = np.dtype(np.int64)
_INT32 = np.dtype(np.int32)
_BYTE = np.dtype(np.uint8)
_BOOL = np.dtype(np.bool_)
#: Maximum number of cached sets of measurements and types. Encoding and decoding have separate caches.
_CACHED_SHAPES = 4_096
#: Maximum number of columns of a tablet.
COLUMNS_MAX = 0xFFFF


class FrameHead(NamedTuple):
    """Device, measurements and types of a frame; frames with equal heads may share one object."""

    device: str
    measurements: tuple[str, ...]
    types: tuple[DataType, ...]
    aligned: bool


class TabletFrame:
    """A frame, in parts or joined, with the values that a write needs: head, span, and whether times are in order.

    A coordinator leaves the frame in parts, so that its bytes are copied once, into the log entry. A MemTable needs the
    joined frame.
    """

    __slots__ = ("_parts", "head", "ordered", "rows", "size", "span")

    def __init__(
        self,
        parts: list[bytes | memoryview],
        size: int,
        head: FrameHead,
        rows: int,
        span: DeviceSpan,
        *,
        ordered: bool,
    ) -> None:
        """`size` is the size of all parts together in bytes. A frame has at least one row."""
        self._parts = parts
        self.size = size
        self.head = head
        self.rows = rows
        #: First and last time.
        self.span = span
        #: True if times increase strictly.
        self.ordered = ordered

    @staticmethod
    def of_bytes(frame: bytes | memoryview) -> TabletFrame:
        """Parse a joined frame of at least one row. Raises CorruptFile."""
        return TabletFrame._timed([frame], len(frame), frame_head(frame), frame_times(frame))

    @staticmethod
    def _timed(parts: list[bytes | memoryview], size: int, head: FrameHead, times: Int64Array) -> TabletFrame:
        ordered = len(times) < 2 or bool((times[1:] > times[:-1]).all())
        first, last = (times[0], times[-1]) if ordered else (times.min(), times.max())
        return TabletFrame(parts, size, head, len(times), DeviceSpan(int(first), int(last)), ordered=ordered)

    @staticmethod
    def of_tablet(tablet: Tablet) -> TabletFrame:
        """Build the frame of a non-empty tablet.

        The frame's parts share the arrays of the tablet. Raises like `encode_tablet`.
        """
        head = _head_of(tablet)
        parts, size = _encode_parts(tablet, head)
        return TabletFrame._timed(parts, size, decode_head(head), tablet.times)

    @property
    def parts(self) -> Sequence[bytes | memoryview]:
        """The bytes, in parts. Items of a memoryview may be wider than a byte."""
        return self._parts

    @property
    def frame(self) -> bytes | memoryview:
        """The bytes of the frame in one piece; the parts are joined at the first access."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0]


def encode_tablet(tablet: Tablet) -> bytes:
    """Encode a tablet as one frame. Raises UserMistake: 2006 for too many columns or bytes, 509 for a too long name."""
    parts, _ = _encode_parts(tablet, _head_of(tablet))
    return b"".join(parts)


def _head_of(tablet: Tablet) -> bytes:
    types = tuple([column.type for column in tablet.columns])
    return encode_head(tablet.device, tablet.measurements, types, tablet.aligned)


def _encode_parts(tablet: Tablet, head: bytes) -> tuple[list[bytes | memoryview], int]:
    """Return the parts of a frame, and their total size in bytes."""
    rows = len(tablet.times)
    shapes = []
    buffers: list[bytes | memoryview] = [_contiguous(tablet.times, _INT64)]
    size = _SIZES.size + len(head) + 8 * len(tablet.columns) + 8 * rows
    for column in tablet.columns:
        values = column.values
        shape = 0
        if isinstance(values, TextArray):
            text_bytes = _add_text(buffers, values)
            shape = text_bytes << 1
            size += (4 * (rows + 1) + 7 & -8) + (text_bytes + 7 & -8)
        else:
            dtype = NUMPY_DTYPE[column.type]
            buffers.append(_contiguous(values, dtype))
            length = rows * dtype.itemsize
            padding = -length & 7
            if padding:
                buffers.append(_PADDING[padding])
            size += length + padding
        if column.valid is not None:
            shape |= 1
            buffers.append(_contiguous(column.valid, _BOOL))
            buffers.append(_PADDING[-rows & 7])
            size += rows + 7 & -8
        shapes.append(shape)
    check_payload(size)
    return [frame_start(head, rows, shapes), *buffers], size


def frame_start(head: bytes, rows: int, shapes: Sequence[int]) -> bytes:
    """Return the part of a frame before the times; `shapes` has an item for each column."""
    return _SIZES.pack(len(head), rows) + head + struct.pack(f"<{len(shapes)}Q", *shapes)


def _contiguous(array: NumericArray, dtype: np.dtype[np.generic]) -> memoryview:
    if array.dtype == dtype and array.flags.c_contiguous:
        return array.data
    return np.ascontiguousarray(array, dtype).data


def _add_text(buffers: list[bytes | memoryview], text: TextArray) -> int:
    """Append the text's offsets (shifted to start at 0) and data to `buffers`; return the size of the data in bytes."""
    first, last = int(text.offsets[0]), int(text.offsets[-1])
    offsets = text.offsets - np.int32(first) if first else text.offsets
    buffers.append(_contiguous(offsets, _INT32))
    buffers.append(_PADDING[-offsets.nbytes & 7])
    buffers.append(_contiguous(text.data[first:last], _BYTE))
    buffers.append(_PADDING[first - last & 7])
    return last - first


def encode_head(device: str, measurements: tuple[str, ...], types: tuple[DataType, ...], aligned: bool) -> bytes:
    """Encode a head. Raises UserMistake like `encode_tablet`."""
    if len(measurements) > COLUMNS_MAX:
        written = f"a write to {device} has {len(measurements):,} columns"
        raise UserMistake(f"{written}: at most {COLUMNS_MAX:,} are allowed; split it", code=2006)
    check_length(f"{device}.{max(measurements, key=len, default='')}")
    name = device.encode()
    head = _HEAD.pack(len(measurements), aligned, 0, len(name), 0) + name + _encode_series(measurements, types)
    return head + _PADDING[-len(head) & 7]


@lru_cache(_CACHED_SHAPES)
def _encode_series(measurements: tuple[str, ...], types: tuple[DataType, ...]) -> bytes:
    """Return the part of a head that tablets of several devices share."""
    parts = []
    for measurement, type_ in zip(measurements, types, strict=True):
        text = measurement.encode()
        parts += [_NAME.pack(type_, len(text)), text]
    return b"".join(parts)


def decode_head(head: bytes) -> FrameHead:
    """Decode a head; the inverse of `encode_head`. Raises CorruptFile."""
    try:
        count, aligned, _, size, _ = _HEAD.unpack_from(head)
        series_at = _HEAD.size + size
        names, types = _decode_series(head[series_at:], count)
        return FrameHead(head[_HEAD.size : series_at].decode(), names, types, bool(aligned))
    except (struct.error, ValueError) as error:
        raise CorruptFile("log", 0, f"not a tablet: {error}") from error


@lru_cache(_CACHED_SHAPES)
def _decode_series(series: bytes, count: int) -> tuple[tuple[str, ...], tuple[DataType, ...]]:
    """Return measurements and types of the part of a head that follows the device. Raises ValueError, struct.error."""
    names, types = [], []
    position = 0
    for _ in range(count):
        type_, size = _NAME.unpack_from(series, position)
        position += _NAME.size
        names.append(series[position : position + size].decode())
        types.append(DataType(type_))
        position += size
    if position > len(series):
        raise ValueError("names reach past the head")
    return tuple(names), tuple(types)


def frame_head(frame: bytes | memoryview) -> FrameHead:
    """Return device, measurements and types of a frame. Raises CorruptFile."""
    size, _ = _sizes(frame)
    return decode_head(bytes(frame[_SIZES.size : _SIZES.size + size]))


def _sizes(frame: bytes | memoryview) -> tuple[int, int]:
    if len(frame) < _SIZES.size:
        raise CorruptFile("log", 0, "a tablet shorter than its head")
    size, rows = _SIZES.unpack_from(frame)
    return size, rows


def frame_times(frame: bytes | memoryview) -> Int64Array:
    """Return the times of a frame, as a view. Raises CorruptFile."""
    size, rows = _sizes(frame)
    (count,) = struct.unpack_from("<H", frame, _SIZES.size)
    try:
        return np.frombuffer(frame, _INT64, rows, _SIZES.size + size + 8 * count)
    except ValueError as error:
        raise CorruptFile("log", 0, f"a tablet is cut short: {error}") from error


def frame_matrix(frame: bytes | memoryview, types: tuple[DataType, ...]) -> NumericArray | None:
    """Return the columns of a frame as the rows of one array of shape (columns, rows), a view.

    Returns None unless all columns have the same fixed-width type, without nulls and without padding between them.
    `types` are the types in the frame's head.
    """
    size, rows = _sizes(frame)
    start = _SIZES.size + size
    shapes = frame[start : start + 8 * len(types)]
    type_ = types[0]
    if type_.is_text or any(shapes) or len(set(types)) > 1:
        return None
    dtype = NUMPY_DTYPE[type_]
    position = start + len(shapes) + 8 * rows
    if rows * dtype.itemsize & 7 or len(frame) - position != len(types) * rows * dtype.itemsize:
        return None
    return np.frombuffer(frame, dtype, len(types) * rows, position).reshape(len(types), rows)


class FixedLayout(NamedTuple):
    """The layout of the body of a frame (the part after its head) whose columns have fixed widths and no nulls."""

    #: Bytes of the body.
    size: int
    #: Positions of the times, and of each column's values, in the body.
    times_at: int
    values_at: tuple[int, ...]


@lru_cache(_CACHED_SHAPES)
def fixed_layout(types: tuple[DataType, ...], rows: int) -> FixedLayout | None:
    """Return the layout for columns of these types; None if one of them has texts."""
    if any(type_.is_text for type_ in types):
        return None
    times_at = 8 * len(types)
    position = times_at + 8 * rows
    values_at = []
    for type_ in types:
        values_at.append(position)
        position += rows * NUMPY_DTYPE[type_].itemsize + 7 & -8
    return FixedLayout(position, times_at, tuple(values_at))


def frame_body(frame: bytes | memoryview) -> tuple[int, bytes | memoryview]:
    """Return the number of rows of a frame, and the part after its head. Raises CorruptFile."""
    size, rows = _sizes(frame)
    return rows, frame[_SIZES.size + size :]


def decode_tablet(frame: bytes | memoryview) -> Tablet:
    """Decode a frame into a tablet whose arrays are views of it. Raises CorruptFile if lengths disagree."""
    head = frame_head(frame)
    size, rows = _sizes(frame)
    count = len(head.types)
    position = _SIZES.size + size + 8 * count
    try:
        shapes: Sequence[int] = struct.unpack_from(f"<{count}Q", frame, position - 8 * count)
        times = np.frombuffer(frame, _INT64, rows, position)
        position += 8 * rows
        columns = []
        for type_, shape in zip(head.types, shapes, strict=True):
            values, position = _values(frame, type_, rows, shape >> 1, position)
            valid = None
            if shape & 1:
                valid = np.frombuffer(frame, _BOOL, rows, position)
                position += rows + 7 & -8
            columns.append(Column(type_, values, valid))
        if position != len(frame):
            raise ValueError(f"{len(frame)} bytes, but {position} are needed")
    except (struct.error, ValueError) as error:
        raise CorruptFile("log", position, f"a tablet of {head.device} is cut short: {error}") from error
    return Tablet(head.device, head.measurements, times, tuple(columns), head.aligned)


def _values(
    frame: bytes | memoryview, type_: DataType, rows: int, text_bytes: int, position: int
) -> tuple[Values, int]:
    """Return a column's values at `position`, and the position after them."""
    if type_.is_text:
        offsets = np.frombuffer(frame, _INT32, rows + 1, position)
        position += 4 * (rows + 1) + 7 & -8
        data = np.frombuffer(frame, _BYTE, text_bytes, position)
        return TextArray(offsets, data), position + text_bytes + 7 & -8
    dtype = NUMPY_DTYPE[type_]
    return np.frombuffer(frame, dtype, rows, position), position + rows * dtype.itemsize + 7 & -8

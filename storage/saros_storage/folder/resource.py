"""The `.resource` file of a TsFile: first and last time of each device, in Apache IoTDB's layout.

    u8 version 1 | u8 kind 3 | i32 n | n * (i64 start, i64 end) | n * (DeviceID, i32 slot)
    i64 greatest plan index | i64 least plan index | i32 -1 (no shared deletions) | u8 0

Big-endian. The reader accepts kinds 1 and 3, and ignores everything after the devices. The content can always be
rebuilt from the TsFile. Pure: any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from saros_storage.base.errors import CorruptFile, UnsupportedFile
from saros_storage.base.types import TIME_MAX, TIME_MIN
from saros_storage.scan.snapshot import DeviceSpan
from saros_storage.scan.tsfile_access import TsFileAccess
from saros_storage.tsfile.structure.device_id import (
    decode_segments,
    encode_segments,
    path_of_segments,
    segments_of_path,
)
from saros_storage.tsfile.structure.format import Cursor

_VERSION = 1
_ARRAY_DEVICE = 3
_PLAIN_DEVICE = 1
_HEAD = struct.Struct(">BBi")
_SLOT = struct.Struct(">i")
_TAIL = struct.Struct(">qqiB")
_SPAN_BYTES = 16


def encode_resource(devices: Mapping[str, DeviceSpan]) -> bytes:
    """Encode the spans of a file's devices."""
    spans = np.array([(s.start, s.end) for s in devices.values()], ">i8")
    ids = b"".join(encode_segments(segments_of_path(d)) + _SLOT.pack(i) for i, d in enumerate(devices))
    head = _HEAD.pack(_VERSION, _ARRAY_DEVICE, len(devices))
    return b"".join((head, spans.tobytes(), ids, _TAIL.pack(TIME_MIN, TIME_MAX, -1, 0)))


def decode_resource(path: str, data: memoryview) -> dict[str, DeviceSpan]:
    """Decode the spans of the devices. Raises CorruptFile, UnsupportedFile."""
    if len(data) < _HEAD.size:
        raise CorruptFile(path, 0, "shorter than a resource file's head")
    version, kind, count = _HEAD.unpack_from(data)
    if version != _VERSION or kind not in (_ARRAY_DEVICE, _PLAIN_DEVICE):
        raise UnsupportedFile(path, f"resource version {version}, index type {kind}")
    start = _HEAD.size + _SPAN_BYTES * count
    if count < 0 or start > len(data):
        raise CorruptFile(path, 2, f"{count} devices in {len(data)} bytes")
    spans = np.frombuffer(data, ">i8", 2 * count, _HEAD.size).reshape(count, 2).tolist()
    cursor = Cursor(path, data[start:], start)
    devices = {}
    for _ in range(count):
        name = path_of_segments(decode_segments(cursor, version_3=False))
        slot = cursor.i32()
        if not 0 <= slot < count:
            raise cursor.corrupt(f"slot {slot} of {count}")
        first, last = spans[slot]
        devices[name] = DeviceSpan(first, last)
    return devices


def devices_of_file(access: TsFileAccess) -> dict[str, DeviceSpan]:
    """Determine the spans of the devices from the TsFile itself. Raises CorruptFile, UnsupportedFile."""
    found = {}
    for name in access.devices():
        index = access.device(name)
        assert index is not None
        series = [index.time] if index.time is not None else list(index.series.values())
        known = [s.statistics for s in series if s.statistics is not None]
        if known:
            found[name] = DeviceSpan(min(s.start for s in known), max(s.end for s in known))
    return found

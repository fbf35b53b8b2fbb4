"""Build the frames of many devices with the same measurements together.

    frames of one size   start | device | start | times | column | mask | column ...    each row of a matrix is a frame;
                         start | device | start | times | column | mask | column ...    all rows are filled together

The frames equal the frames of the devices' individual tablets (`tablet_codec`), byte for byte: logs, replicas and older
versions see no difference. Two frames have the same size if the paths of their devices have the same length, and the
devices have the same number of rows. Frames of rare sizes and frames with text are built individually. Pure: any
thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from saros_storage.base.tablet import MultiTablet, Tablet, first_rows
from saros_storage.base.types import NUMPY_DTYPE, Int64Array, NumericArray
from saros_storage.log.record import check_payload
from saros_storage.mutation.tablet_codec import (
    DEVICE_AT,
    FrameHead,
    TabletFrame,
    decode_head,
    encode_head,
    encode_tablet,
    frame_start,
)
from saros_storage.scan.snapshot import DeviceSpan

#: Minimum number of frames of one size that are built together; for fewer, encoding each frame takes less time.
_TOGETHER_MIN = 4
#: Frames up to this size are copied to separate bytes objects.
_SMALL_BYTES = 1_024


def frames_of_devices(tablet: MultiTablet) -> list[TabletFrame]:
    """Return one joined frame for each device, in order. Raises the errors of `encode_tablet`."""
    if any(column.type.is_text for column in tablet.columns):
        return list(map(_frame_of, tablet.tablets()))
    paths = [device.encode() for device in tablet.devices]
    by_size: dict[tuple[int, int], list[int]] = {}
    for number, size in enumerate(zip(map(len, paths), tablet.counts, strict=True)):
        by_size.setdefault(size, []).append(number)
    starts = first_rows(tablet.counts)
    frames: list[TabletFrame | None] = [None] * len(paths)
    for (_, rows), numbers in by_size.items():
        if len(numbers) >= _TOGETHER_MIN:
            found = _frames_of_one_size(tablet, [paths[n] for n in numbers], _Rows(numbers, starts[numbers], rows))
        else:
            found = [_frame_of(tablet.tablet_of(number, int(starts[number]))) for number in numbers]
        for number, frame in zip(numbers, found, strict=True):
            frames[number] = frame
    return [frame for frame in frames if frame is not None]


def _frame_of(tablet: Tablet) -> TabletFrame:
    return TabletFrame.of_bytes(encode_tablet(tablet))


class _Rows(msgspec.Struct, frozen=True, eq=False):
    """The rows of devices with `count` rows each; `starts` are the positions of their first rows."""

    devices: Sequence[int]
    starts: Int64Array
    count: int

    def matrix(self, values: NumericArray) -> NumericArray:
        """Return the values of these rows as an array of shape (devices, count)."""
        if self.devices[-1] - self.devices[0] == len(self.devices) - 1:
            first = int(self.starts[0])
            return values[first : first + len(self.devices) * self.count].reshape(-1, self.count)
        taken: NumericArray = values[self.starts[:, None] + np.arange(self.count)]
        return taken


def _frames_of_one_size(tablet: MultiTablet, paths: Sequence[bytes], rows: _Rows) -> list[TabletFrame]:
    devices = [tablet.devices[number] for number in rows.devices]
    types = tuple([column.type for column in tablet.columns])
    head = encode_head(max(devices, key=len), tablet.measurements, types, tablet.aligned)
    shapes = [column.valid is not None for column in tablet.columns]
    start = np.frombuffer(frame_start(head, rows.count, shapes), np.uint8)
    fields: list[NumericArray] = [tablet.times]
    for column in tablet.columns:
        fields.append(column.numbers.astype(NUMPY_DTYPE[column.type], copy=False))
        if column.valid is not None:
            fields.append(column.valid)
    size = len(start) + sum([rows.count * field.itemsize + 7 & -8 for field in fields])
    check_payload(size)
    frames = np.zeros((len(devices), size), np.uint8)
    frames[:, : len(start)] = start
    frames[:, DEVICE_AT : DEVICE_AT + len(paths[0])] = np.frombuffer(b"".join(paths), np.uint8).reshape(len(paths), -1)
    position = len(start)
    for field in fields:
        width = rows.count * field.itemsize
        frames[:, position : position + width].view(field.dtype)[:] = rows.matrix(field)
        position += width + 7 & -8
    return _cut(frames, devices, decode_head(head), rows.matrix(tablet.times))


def _cut(frames: NumericArray, devices: Sequence[str], head: FrameHead, times: Int64Array) -> list[TabletFrame]:
    """Return each row of a matrix as a frame.

    `head` is the head of one of the frames; `times` has the shape (devices, rows).
    """
    count, size = frames.shape
    frames.flags.writeable = False
    # A view of a small frame would take more memory than its bytes.
    whole = frames.reshape(-1).data if size > _SMALL_BYTES else frames.tobytes()
    parts = [whole[stop - size : stop] for stop in range(size, (count + 1) * size, size)]
    ordered = np.all(times[:, 1:] > times[:, :-1], axis=1).tolist()
    spans = map(DeviceSpan, times.min(axis=1).tolist(), times.max(axis=1).tolist())
    names, types, aligned, rows = head.measurements, head.types, head.aligned, times.shape[1]
    return [
        TabletFrame([part], size, FrameHead(device, names, types, aligned), rows, span, ordered=rising)
        for part, device, span, rising in zip(parts, devices, spans, ordered, strict=True)
    ]

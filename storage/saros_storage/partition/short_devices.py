"""Devices that have few rows in a MemTable, collected so that a flush can write many of them together.

    frames of devices with the same series, chunks and rows --joined--> bytes as an array of devices x chunks x bytes
                                                            --cut-----> times: devices x rows, values: devices x rows

A device can be written together with others under these conditions: all its chunks have the same series (at most
`_SERIES_MAX`) and equal numbers of rows (at most `SHORT_ROWS` in total); its times rise; and all its columns have fixed
widths and no nulls. A few calls join and cut the frames of all such devices; otherwise, each series would need several
calls.

Only the thread that flushes uses this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saros_storage.base.types import NUMPY_DTYPE, DataType, NumericArray
from saros_storage.mutation.tablet_codec import FixedLayout, fixed_layout
from saros_storage.tsfile.device_batch import DeviceBatch

#: Limits for a device that is written together with others: the number of its rows, and the number of its series.
SHORT_ROWS, _SERIES_MAX = 64, 64
#: A window is full once its devices have this number of series in total. The limit keeps a step short, since a
#: throttled flush pauses only between steps.
_WINDOW_SERIES = 1_024
#: Devices are written together if a batch has at least this number of devices on average.
_BATCH_MIN = 4


class ShortRows(NamedTuple):
    """The rows of a device: the bodies of its frames, which all have the same layout."""

    aligned: bool
    measurements: tuple[str, ...]
    types: tuple[DataType, ...]
    #: Rows of each body.
    rows: int
    layout: FixedLayout
    bodies: Sequence[bytes | memoryview]


def short_rows(
    aligned: bool,
    measurements: tuple[str, ...],
    types: tuple[DataType, ...],
    parts: Sequence[tuple[int, bytes | memoryview]],
) -> ShortRows | None:
    """Return a device's rows, given as `parts` (rows, body); None if they cannot be written with other devices."""
    rows = parts[0][0]
    if rows * len(parts) > SHORT_ROWS or len(types) > _SERIES_MAX:
        return None
    layout = fixed_layout(types, rows)
    if layout is None or any(count != rows or len(body) != layout.size for count, body in parts):
        return None
    return ShortRows(aligned, measurements, types, rows, layout, [body for _, body in parts])


class DeviceWindow:
    """Devices that are written together, grouped by their shape."""

    def __init__(self) -> None:
        self.devices: list[str] = []
        #: The places and the rows of the devices of each shape. A shape with equal but not identical tuples counts as
        #: another.
        self._shapes: dict[tuple[int, int, bool, int, int], tuple[list[int], list[ShortRows]]] = {}
        self._series = 0

    def add(self, device: str, rows: ShortRows) -> None:
        """Append a device, whose name must be greater than the names of all devices appended before."""
        shape = id(rows.measurements), id(rows.types), rows.aligned, rows.rows, len(rows.bodies)
        places, alike = self._shapes.setdefault(shape, ([], []))
        places.append(len(self.devices))
        alike.append(rows)
        self.devices.append(device)
        self._series += len(rows.types)

    @property
    def is_full(self) -> bool:
        """True if the devices should be written now."""
        return self._series >= _WINDOW_SERIES

    @property
    def pays(self) -> bool:
        """True if writing the devices together is faster than writing each device alone."""
        return len(self.devices) >= _BATCH_MIN * len(self._shapes) > 0

    def batches(self) -> list[DeviceBatch]:
        """Return the devices as batches."""
        return [self._batch(places, alike) for places, alike in self._shapes.values()]

    def _batch(self, places: list[int], alike: list[ShortRows]) -> DeviceBatch:
        first = alike[0]
        layout = first.layout
        data = np.frombuffer(b"".join([body for one in alike for body in one.bodies]), np.uint8)
        bodies = data.reshape(len(alike), len(first.bodies), layout.size)

        def matrix(type_: DataType, at: int) -> NumericArray:
            dtype = NUMPY_DTYPE[type_]
            part = np.ascontiguousarray(bodies[:, :, at : at + first.rows * dtype.itemsize])
            return part.view(dtype).reshape(len(alike), -1)

        order = sorted(range(len(first.types)), key=first.measurements.__getitem__)
        return DeviceBatch(
            [self.devices[place] for place in places],
            np.array(places),
            first.aligned,
            tuple(first.measurements[column] for column in order),
            tuple(first.types[column] for column in order),
            matrix(DataType.TIMESTAMP, layout.times_at),
            tuple(matrix(first.types[column], layout.values_at[column]) for column in order),
        )

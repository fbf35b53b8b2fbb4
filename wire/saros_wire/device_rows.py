"""A write of rows of several devices, and its outcome. Pure data: any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class DeviceRows(msgspec.Struct, frozen=True):
    """Rows of several devices with the same columns, grouped by device.

    A null is an absent point. If all of a device's values in a column are null, the device does not get that column.
    """

    devices: Sequence[str]
    #: The number of rows of each device, at least 1.
    counts: Sequence[int]
    #: The times and values of all rows, as for an insert of one device.
    times: object
    columns: Mapping[str, object]
    #: If True, new devices are created aligned. If False or None, they are not.
    aligned: bool | None = None


class RowsWritten(msgspec.Struct, frozen=True):
    """The outcome of a write. For each device, either all rows were written or all rows were refused."""

    points: int
    #: The status code and message of each refused device, keyed by the index of the device.
    refused: Mapping[int, tuple[int, str]] = msgspec.field(default_factory=dict)

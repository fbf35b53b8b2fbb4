"""A write of rows of several devices, and its outcome. Pure data: any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """Rows of several devices with the same columns; the rows of each device follow one another.

    A null is an absent point, and a column in which a device has only nulls is not one of its columns.
    """

    devices: Sequence[str]
    #: The number of rows of each device, at least 1.
    counts: Sequence[int]
    #: As for an insert of one device: the values of all rows.
    times: object
    columns: Mapping[str, object]
    #: Whether new devices are aligned; None: they are not.
    aligned: bool | None = None


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """The outcome of a write: the rows of each device were written, or refused by themselves."""

    points: int
    #: Status code and message, by the place of the device.
    refused: Mapping[int, tuple[int, str]] = field(default_factory=dict)

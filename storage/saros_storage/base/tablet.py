"""The write batch: one device, its measurements, times, and one column per measurement.

A `MultiTablet` holds the rows of many devices with the same measurements in shared columns.

Rows keep their order of arrival: times may repeat and be unsorted. For equal times of one series the later row wins,
and a null never replaces a value. Once a tablet is written, its arrays belong to the store, and may be views of a
record of its log.

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from saros_storage.base.block import Column
from saros_storage.base.types import Int64Array


class Tablet(msgspec.Struct, frozen=True, eq=False):
    """A batch of rows: `device` in canonical text (see `paths`); `columns[i]` belongs to `measurements[i]`."""

    device: str
    measurements: tuple[str, ...]
    times: Int64Array
    columns: tuple[Column, ...]
    #: True if the device is aligned. The value must agree with an existing device, and applies to a device that this
    #: tablet creates.
    aligned: bool = False

    def validate(self) -> None:
        """Assert that lengths agree and that no measurement repeats; a violation is a bug of the caller."""
        assert len(self.measurements) == len(self.columns)
        assert len(set(self.measurements)) == len(self.measurements)
        assert all(len(c) == len(self.times) for c in self.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.times)


class MultiTablet(msgspec.Struct, frozen=True, eq=False):
    """Rows of many devices with the same measurements, grouped by device.

    The first `counts[0]` rows belong to `devices[0]`, and so on. Writing a `MultiTablet` has the same effect as writing
    its `tablets`, but costs less per device.
    """

    devices: Sequence[str]
    #: The number of rows of each device, at least 1.
    counts: Sequence[int]
    measurements: tuple[str, ...]
    times: Int64Array
    columns: tuple[Column, ...]
    aligned: bool = False

    def tablets(self) -> Iterator[Tablet]:
        """Yield the tablet of each device; its arrays are views."""
        for number, start in enumerate(first_rows(self.counts).tolist()):
            yield self.tablet_of(number, start)

    def tablet_of(self, number: int, start: int) -> Tablet:
        """Return the tablet of device `number`, whose first row is row `start`; its arrays are views."""
        stop = start + self.counts[number]
        columns = tuple([column.slice(start, stop) for column in self.columns])
        return Tablet(self.devices[number], self.measurements, self.times[start:stop], columns, self.aligned)


def first_rows(counts: Sequence[int]) -> Int64Array:
    """Return the position of each device's first row; the groups of rows have the sizes `counts`."""
    numbers = np.array(counts, np.int64)
    found: Int64Array = np.cumsum(numbers) - numbers
    return found


def tablets_of(tablet: Tablet | MultiTablet) -> Iterator[Tablet]:
    """Yield a `Tablet` itself, or the tablet of each device of a `MultiTablet`."""
    if isinstance(tablet, Tablet):
        yield tablet
    else:
        yield from tablet.tablets()

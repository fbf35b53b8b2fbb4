"""The write batch: one device, its measurements, times, and one column per measurement.

Rows keep their order of arrival: times may repeat and be unsorted. For equal times of one series the later row wins,
and a null never replaces a value. Once a tablet is written, its arrays belong to the store (they are views of its log
record).

Pure: any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from saros_storage.base.block import Column
from saros_storage.base.types import Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Tablet:
    """A batch of rows: `device` in canonical text (see `paths`); `columns[i]` belongs to `measurements[i]`."""

    device: str
    measurements: tuple[str, ...]
    times: Int64Array
    columns: tuple[Column, ...]
    #: Alignment of the device if this tablet creates it; must agree with the device if it exists.
    aligned: bool = False

    def validate(self) -> None:
        """Assert the shape rules; a violation is a bug of the caller."""
        assert len(self.measurements) == len(self.columns)
        assert len(set(self.measurements)) == len(self.measurements)
        assert all(len(c) == len(self.times) for c in self.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.times)

"""Detect series that were dropped after a job was planned; the task then fails and does not return nulls.

A read point preserves data, not the schema. A series that has a value in a task's rows still exists. After the last
row, the task asks the server for the series of each device that has a column without values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from saros_spark.base.errors import SourceError
from saros_spark.read.catalogue import read_series

if TYPE_CHECKING:
    import saros

_DEVICE = "Device"
#: The maximum number of devices that are queried one by one. For more devices, the relation's patterns are queried.
_ASKED_MAX = 16
#: The maximum number of series that an error names.
_NAMED_MAX = 5


class DroppedSeriesCheck:
    """Checks that each of a task's `devices` still has the series `measurements`, which are the result's `columns`."""

    def __init__(self, devices: Sequence[str], measurements: Sequence[str], columns: Collection[str]) -> None:
        self._measurements = measurements
        #: For each device, the columns in which no value has appeared yet.
        self._empty = {device: set(columns) for device in devices}

    def observe(self, batch: pa.RecordBatch) -> None:
        """Observe a batch of the result, in which the rows of a device are contiguous."""
        if not self._empty or not batch.num_rows:
            return
        place = batch.schema.get_field_index(_DEVICE)
        names = batch.column(place)
        devices = [names[0].as_py()] if names[0] == names[-1] else pc.unique(names).to_pylist()
        whole = {name for name, column in zip(batch.schema.names, batch.columns, strict=True) if not column.null_count}
        for device in devices:
            empty = self._empty.get(device)
            if empty is None:
                continue
            empty -= whole
            if empty:
                rows = batch if len(devices) == 1 else batch.filter(pc.equal(names, device))
                columns = [(name, rows.column(name)) for name in empty if name in rows.schema.names]
                empty -= {name for name, column in columns if column.null_count < len(column)}
            if not empty:
                del self._empty[device]

    def check(self, connection: saros.Connection, patterns: Sequence[str]) -> None:
        """Check after the last row. `patterns` select the relation's devices. Raises SourceError with the series."""
        if not self._empty:
            return
        found = read_series(connection, list(self._empty) if len(self._empty) <= _ASKED_MAX else patterns)
        series = [(device, name) for device in self._empty for name in self._measurements]
        refuse([f"{device}.{name}" for device, name in series if name not in found.get(device, {})])


def refuse(dropped: Sequence[str]) -> None:
    """Raise SourceError if any series were dropped."""
    if dropped:
        more = f" and {len(dropped) - _NAMED_MAX} more" if len(dropped) > _NAMED_MAX else ""
        raise SourceError(
            f"series {', '.join(dropped[:_NAMED_MAX])}{more} were dropped since the job was planned; create the"
            " DataFrame again"
        )

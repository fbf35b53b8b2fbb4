"""SELECT INTO: write the blocks of a query to the targets in batches, and return the number of points of each target.

Nulls are not written, and a series without points is not created. Rows without a time (an aggregate over all rows) get
time 0. Each block is written as one batch per device; if an error occurs, earlier batches remain written.

Runs on the caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.catalog.views import source_of_alias
from saros_engine.execution.result import Rows
from saros_engine.plan.plan import Field
from saros_engine.planner.into import Target
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import split_series
from saros_storage.base.types import BoolArray, DataType, Int64Array, Scalar

_TYPE_MISMATCH = 701
#: The largest count in the column `Written`, which is INT32 because IoTDB's clients expect this type.
_WRITTEN_MAX = 2**31 - 1
#: Writes a batch, given the device, the times, the column of each measurement, and whether INTO contains ALIGNED.
WriteBatch = Callable[[str, Int64Array, dict[str, Column], bool], None]


#: For each type of column, the other types of series to which the column may be written. The series can hold values of
#: this magnitude, although integers may lose digits in floating-point series.
_WIDER: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64, DataType.FLOAT, DataType.DOUBLE}),
    DataType.INT64: frozenset({DataType.DOUBLE, DataType.TIMESTAMP}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
    DataType.TEXT: frozenset({DataType.STRING}),
    DataType.STRING: frozenset({DataType.TEXT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}


def check_types(targets: Sequence[Target], fields: Sequence[Field], schema: SchemaReader) -> None:
    """Raise UserMistake 701 if the series of a target exists and has a type to which the column cannot be written."""
    for target in targets:
        path = f"{target.device}.{target.measurement}"
        written, measurement = split_series(source_of_alias(schema.catalogue, path) or path)
        device = schema.device(written)
        series = None if device is None else device.find(measurement)
        type_ = fields[target.column + (target.source is not None)].type
        if series is not None and series.type is not type_ and series.type not in _WIDER.get(type_, ()):
            raise UserMistake(
                f"{path} is {series.type.name}: a column of {type_.name} does not fit", code=_TYPE_MISMATCH
            )


def write_into(rows: Rows, targets: Sequence[Target], write: WriteBatch) -> list[int | None]:
    """Write all rows; return the number of points written to each target, or None for a target without rows."""
    counts: list[int | None] = [None] * len(targets)
    while (block := rows.next_block()) is not None:
        times = np.zeros(block.rows, np.int64) if block.time is None else block.time
        for numbers in _by_device(targets):
            chosen = _rows_of(block, targets[numbers[0]].source)
            columns = {}
            for number in numbers:
                column = _column(block, targets[number])
                column = column if chosen is None else column.compress(chosen)
                points = column.present_count
                if len(column):
                    counts[number] = points + (counts[number] or 0)
                if points:
                    columns[targets[number].measurement] = column
            if columns:
                first = targets[numbers[0]]
                _write(first.device, times if chosen is None else times[chosen], columns, first.aligned, write)
    return counts


def _by_device(targets: Sequence[Target]) -> Iterator[list[int]]:
    """Yield groups of targets (their indexes) that write the same rows to the same device."""

    def key(number: int) -> tuple[str, str]:
        return targets[number].source or "", targets[number].device

    for _, numbers in groupby(sorted(range(len(targets)), key=key), key):
        yield list(numbers)


def _rows_of(block: Block, source: str | None) -> BoolArray | None:
    """Return a mask that selects the rows of a source device, or None if `source` is None and all rows are selected."""
    if source is None:
        return None
    return np.array([name == source for name in block.columns[0].to_list()], np.bool_)


def _column(block: Block, target: Target) -> Column:
    return block.columns[target.column + (target.source is not None)]


def _write(device: str, times: Int64Array, columns: dict[str, Column], aligned: bool, write: WriteBatch) -> None:
    block = Block.timed(times, columns.values()).without_empty_rows()
    write(device, block.times, dict(zip(columns, block.columns, strict=True)), aligned)


def written(
    targets: Sequence[Target], names: Sequence[str], counts: Sequence[int | None]
) -> tuple[list[Field], list[list[Scalar]]]:
    """Return the fields and rows of SELECT INTO's result. With ALIGN BY DEVICE, devices without rows are omitted.

    `names` are the names of the query's result columns.
    """
    by_device = any(target.source is not None for target in targets)
    fields = [Field("SourceDevice", DataType.TEXT)] if by_device else []
    fields += [Field("SourceColumn", DataType.TEXT), Field("TargetTimeseries", DataType.TEXT)]
    fields.append(Field("Written", DataType.INT32))
    rows: list[list[Scalar]] = []
    for target, count in zip(targets, counts, strict=True):
        if count is None and by_device:
            continue
        source: list[Scalar] = [target.source] if by_device else []
        path = f"{target.device}.{target.measurement}"
        rows.append([*source, names[target.column], path, min(count or 0, _WRITTEN_MAX)])
    return fields, rows

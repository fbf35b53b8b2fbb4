"""SELECT INTO at work: the blocks of a query become batches for its targets, and rows that say what was written.

Nulls are not written; a series of which there is nothing is not made. Rows without a time (an aggregate over all) get
time 0. Each block is one batch per device: what was written before an error stays.

Runs on the caller's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np

from saros_engine.base.authorized_schema import SchemaReader
from saros_engine.execution.result import Rows
from saros_engine.plan.plan import Field
from saros_engine.planner.into import Target
from saros_storage.base.block import Block, Column
from saros_storage.base.errors import UserMistake
from saros_storage.base.types import BoolArray, DataType, Int64Array, Scalar

_TYPE_MISMATCH = 507
#: `Written` is INT32, as clients of IoTDB expect; larger counts are shown as this one.
_WRITTEN_MAX = 2**31 - 1
#: (device, times, columns by measurement, ALIGNED was said) -> written.
WriteBatch = Callable[[str, Int64Array, dict[str, Column], bool], None]


#: Columns go to series of other types where no value is out of range; whole numbers may lose digits in floating ones.
_WIDER: dict[DataType, frozenset[DataType]] = {
    DataType.INT32: frozenset({DataType.INT64, DataType.FLOAT, DataType.DOUBLE}),
    DataType.INT64: frozenset({DataType.DOUBLE, DataType.TIMESTAMP}),
    DataType.FLOAT: frozenset({DataType.DOUBLE}),
    DataType.TEXT: frozenset({DataType.STRING}),
    DataType.STRING: frozenset({DataType.TEXT}),
    DataType.TIMESTAMP: frozenset({DataType.INT64}),
}


def check_types(targets: Sequence[Target], fields: Sequence[Field], schema: SchemaReader) -> None:
    """Raise UserMistake 507 for a target whose series is there with a type that the column would be cut to."""
    for target in targets:
        device = schema.device(target.device)
        series = None if device is None else device.find(target.measurement)
        type_ = fields[target.column + (target.source is not None)].type
        if series is not None and series.type is not type_ and series.type not in _WIDER.get(type_, ()):
            message = (
                f"{target.device}.{target.measurement} is {series.type.name}: a column of {type_.name} does not fit"
            )
            raise UserMistake(message, code=_TYPE_MISMATCH)


def write_into(rows: Rows, targets: Sequence[Target], write: WriteBatch) -> list[int | None]:
    """Write all rows; how many points went to each target, None for those that no row was for."""
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
    """The numbers of the targets that take the same rows to the same device."""

    def key(number: int) -> tuple[str, str]:
        return targets[number].source or "", targets[number].device

    for _, numbers in groupby(sorted(range(len(targets)), key=key), key):
        yield list(numbers)


def _rows_of(block: Block, source: str | None) -> BoolArray | None:
    """The rows of a device; None: all."""
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
    """What SELECT INTO answers, nothing of targets that no row was for; `names` are the result columns'."""
    by_device = any(target.source is not None for target in targets)
    fields = [Field("SourceDevice", DataType.TEXT)] if by_device else []
    fields += [Field("SourceColumn", DataType.TEXT), Field("TargetTimeseries", DataType.TEXT)]
    fields.append(Field("Written", DataType.INT32))
    rows: list[list[Scalar]] = []
    for target, count in zip(targets, counts, strict=True):
        if count is None:
            continue
        source: list[Scalar] = [target.source] if by_device else []
        rows.append([*source, names[target.column], f"{target.device}.{target.measurement}", min(count, _WRITTEN_MAX)])
    return fields, rows

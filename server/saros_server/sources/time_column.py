"""Find the column that holds the times of a file's rows, if no option names this column. Pure: any thread.

    columns of timestamps       one with a usual name of times; otherwise the only one, at any position
    no timestamps, but names    time, timestamp, datetime, date, ts, in this order
    neither                     the first column if its texts are times; otherwise the only column with times; otherwise
                                the first column

If the choice is ambiguous, an error lists the candidates.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import pyarrow as pa

from saros_server.sources.source_options import SourceError
from saros_server.sources.source_times import TimeReader
from saros_server.sources.source_types import is_text

TIME_NAMES = ("time", "timestamp", "datetime", "date", "ts")
#: Number of rows that are examined to find the column.
_HEAD_ROWS = 1_000
#: The column name that pandas writes to a file for an index without a name.
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def named_time_column(names: Collection[str]) -> str | None:
    """Return the column whose name is one of the usual names for times, or None."""
    lower = {name.strip().lower(): name for name in reversed(list(names))}
    return next((lower[name] for name in TIME_NAMES if name in lower), None)


def find_time_column(
    head: pa.RecordBatch, device_column: str | None, reader: TimeReader, file: str, notes: list[str]
) -> str:
    """Return the time column of a file that begins with these rows.

    If the column is a guess, add a note. Raises SourceError.
    """
    types: dict[str, pa.DataType] = {field.name: field.type for field in head.schema if field.name != device_column}
    stamps = [name for name, type_ in types.items() if pa.types.is_timestamp(type_)]
    named = named_time_column(types)
    if stamps:
        rival = [named] if named is not None and pa.types.is_integer(types[named]) else []
        return named_time_column(stamps) or _only([*rival, *stamps], file)
    if named is not None:
        return named
    rows = head.slice(0, _HEAD_ROWS)
    first = next(iter(types))
    written = [
        name
        for name, type_ in types.items()
        if pa.types.is_date(type_) or (is_text(type_) and reader.are_times(rows.column(name).cast(pa.string())))
    ]
    if first in written or not written:
        return first
    found = _only(written, file)
    notes.append(
        f"the times are those of {found!r}, the only column of texts that are times; --time-column names another"
    )
    return found


def _only(candidates: list[str], file: str) -> str:
    if len(candidates) > 1:
        listed = ", ".join(map(repr, candidates))
        raise SourceError(f"{file}: several columns may hold the times: {listed}; --time-column NAME says which one")
    return candidates[0]


def unnamed_indexes(schema: pa.Schema) -> list[str]:
    """Return the integer columns that were an unnamed index in pandas: they hold row numbers, not measurements."""
    kept = (schema.pandas_metadata or {}).get("index_columns", ())
    names = [name for name in kept if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)]
    return [name for name in names if pa.types.is_integer(schema.field(name).type)]

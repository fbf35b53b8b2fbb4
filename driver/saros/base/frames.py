"""Converts results to data frames of other libraries, and data frames to times and columns to write. Pure.

Frames of pandas and Polars, Arrow tables, and other objects with Arrow's PyCapsule interface, such as a relation of
DuckDB, can be written. Their times are in a column named time, in upper or lower case, or in a pandas index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from saros.errors import InterfaceError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_TIME = "time"
_NOT_A_TABLE = "a mapping, a DataFrame or an Arrow table"


# ---------------------------------------------------------------------------------------------- reading


def check_installed(library: str) -> None:
    """Raise InterfaceError if an optional library is not installed."""
    if find_spec(library) is None:
        raise InterfaceError(f"this needs {library}, which is not installed: pip install 'saros[{library}]'")


def check_time_index(schema: pa.Schema) -> None:
    """Raise InterfaceError unless the first column is Time."""
    if schema.names[:1] != ["Time"]:
        raise InterfaceError("time_index: the result has no column Time")


def pandas_frame(table: pa.Table, *, time_index: bool) -> pd.DataFrame:
    """Return the table as a pandas DataFrame. With `time_index`, the column Time is its index."""
    frame: pd.DataFrame = table.to_pandas()
    return frame.set_index("Time") if time_index else frame


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """Return the table as a Polars DataFrame. Raises polars.exceptions.DuplicateError for two equal names."""
    import polars as pl

    return pl.DataFrame(table)


# ---------------------------------------------------------------------------------------------- writing


def times_and_columns(device: object, times: object, columns: object | None) -> tuple[object, Mapping[str, object]]:
    """Return the times and the named columns to write. If `columns` is None, `times` is a frame with both.

    Raises InterfaceError for other objects, for names that are not strings, and for columns of a frame that cannot be
    series: columns with equal names, a column named time, or a column with a full path as its name.
    """
    if columns is None:
        return _split(device, times)
    _check_texts(device, columns if isinstance(columns, Mapping) else ())
    if isinstance(columns, Mapping):
        return times, columns
    found = _columns_of(columns)
    if found is None:
        raise InterfaceError(f"columns must be {_NOT_A_TABLE}, not {type(columns).__name__}")
    named = dict(_checked(found))
    for name in named:
        if name.lower() == _TIME:
            raise InterfaceError(
                f"column {name} would be a series: give times as the second argument, and the table without them"
                f" (to write a series with this name, give a mapping)"
            )
    return times, named


def _split(device: object, frame: object) -> tuple[object, Mapping[str, object]]:
    _check_texts(device, ())
    found = None if isinstance(frame, Mapping) else _columns_of(frame)
    if found is None:
        raise InterfaceError(
            f"insert takes a device and a DataFrame or an Arrow table with the times, or a device, times and columns;"
            f" the second argument is a {type(frame).__name__}, and there is no third"
        )
    named = dict(_checked(found))
    times = {name: named[name] for name in named if name.lower() == _TIME}
    index = _time_index(frame)
    if len(times) + (index is not None) != 1:
        places = [f"a column {name}" for name in times] + ([] if index is None else ["an index of times"])
        problem = (
            f"{' and '.join(places)}: remove one,"
            if places
            else "no column time, and no index of times: rename one to time,"
        )
        raise InterfaceError(f"the {type(frame).__name__} has {problem} or give the times as the second argument")
    return index if index is not None else next(iter(times.values())), {n: named[n] for n in named if n not in times}


def _columns_of(frame: Any) -> Iterable[tuple[object, object]] | None:
    """Return the names and columns of a frame, or None if the object is not a frame."""
    if hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "iloc"):  # columns of pandas are converted later
        import pyarrow as pa

        _check_whole(frame)
        try:
            reader = pa.RecordBatchReader.from_stream(frame)
        except pa.ArrowInvalid:  # a stream of arrays, not of record batches
            return None
        table = reader.read_all()
        return zip(table.column_names, table.columns, strict=True)
    if hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        return ((name, frame[name]) for name in frame.columns)
    return None


def _check_whole(frame: Any) -> None:
    """Raise InterfaceError 509 if a column's name has a zero byte, where Arrow's C interface would cut the name off."""
    names = getattr(getattr(frame, "schema", None), "names", None)
    for name in names if isinstance(names, list) else getattr(frame, "columns", ()):
        if isinstance(name, str) and "\0" in name:
            raise InterfaceError(f"column {name!r} has a zero byte in its name: rename it", 509)


def _time_index(frame: Any) -> object | None:
    """Return the index of a pandas DataFrame if it holds times, judging by its type or its name."""
    index = getattr(frame, "index", None) if hasattr(frame, "iloc") else None
    is_time = getattr(index, "inferred_type", "") == "datetime64" or str(getattr(index, "name", "")).lower() == _TIME
    return index if is_time else None


def _checked(columns: Iterable[tuple[object, object]]) -> Iterable[tuple[str, object]]:
    seen: set[object] = set()
    for name, values in columns:
        if name in seen:
            raise InterfaceError(f"two columns are named {name}: rename one, since each becomes a series")
        if str(name).startswith("root."):
            raise InterfaceError(
                f"column {name} is a full path instead of a name within the device: rename it, or fetch with"
                f" short_names=True (to write a series with this name, give a mapping)"
            )
        seen.add(name)
        yield str(name), values


def _check_texts(device: object, names: Iterable[object]) -> None:
    for name in (device, *names):
        if not isinstance(name, str):
            raise InterfaceError(f"paths of devices and names of columns must be texts, not {name!r}", 2003)

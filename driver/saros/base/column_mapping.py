"""Columns by name, of mappings, DataFrames and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from saros.errors import InterfaceError


def as_mapping(device: object, columns: object) -> Mapping[str, object]:
    """A device's columns by name: a mapping as it is, a DataFrame's or an Arrow table's columns.

    Raises InterfaceError for what is none, for names that are no texts, and for those of a table that stand for two
    things: two columns, or the times.
    """
    named = columns if isinstance(columns, Mapping) else ()
    for name in (device, *named):
        if not isinstance(name, str):
            raise InterfaceError(f"paths of devices and names of columns are texts, not {name!r}", 2003)
    if isinstance(columns, Mapping):
        return columns
    names = getattr(columns, "column_names", None)  # pyarrow.Table, RecordBatch
    if names is not None and hasattr(columns, "column"):
        _check_names(names)
        return {name: columns.column(i) for i, name in enumerate(names)}
    names = getattr(columns, "columns", None)  # pandas.DataFrame
    if names is not None and hasattr(columns, "__getitem__"):
        _check_names(names)
        return {str(name): columns[name] for name in names}
    raise InterfaceError(
        f"columns must be a mapping, a DataFrame or an Arrow table, not {type(columns).__name__}", 2003
    )


def _check_names(names: Iterable[object]) -> None:
    seen: set[object] = set()
    for name in names:
        if name in seen:
            raise InterfaceError(f"two columns are called {name}: each is a series, with a name of its own", 2003)
        if str(name).lower() == "time":
            raise InterfaceError(
                f"column {name} would be a series: give times as the second argument, and the table without them"
                f" (a series that is called so goes in a mapping)",
                2003,
            )
        seen.add(name)

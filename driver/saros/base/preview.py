"""The HTML preview of a result in notebooks. Bounded in rows, columns and characters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from itertools import islice
from typing import Any

import pyarrow as pa

from saros.base.columns import python_rows
from saros.errors import DataError

#: Limits of a preview, which notebooks store in their files.
ROWS_MAX, COLUMNS_MAX, CHARACTERS_MAX = 10, 20, 80
_NULL = "<em>null</em>"


def html_table(
    batches: Iterable[pa.RecordBatch],
    names: Sequence[str],
    types: Sequence[str],
    *,
    epoch: bool,
    failed: Exception | None,
) -> str:
    """Return a table of the first rows.

    batches  the first batches of the result, with more than `ROWS_MAX` rows if the result has more than `ROWS_MAX` rows
    failed   the error that ended the result after these batches
    """
    batches = list(batches)
    rows = list(islice((row for batch in batches for row in _rows(batch, epoch=epoch)), ROWS_MAX))
    head = [f"{_cell(name)}<br><small>{_cell(type_)}</small>" for name, type_ in zip(names, types, strict=True)]
    body = [[_NULL if value is None else _cell(value) for value in row] for row in rows]
    if len(names) > COLUMNS_MAX:
        head = [*head[:COLUMNS_MAX], f"and {len(names) - COLUMNS_MAX:,} columns"]
        body = [[*row, "&hellip;"] for row in body]
    lines = [_row("th", head), *(_row("td", cells) for cells in body)]
    return "<table>\n" + "\n".join(lines) + f"\n</table>\n<p>{_count(batches, failed)}</p>"


def _rows(batch: pa.RecordBatch, *, epoch: bool) -> Iterable[tuple[Any, ...]]:
    shown = batch.slice(0, ROWS_MAX).select(range(min(batch.num_columns, COLUMNS_MAX)))
    try:
        return python_rows(shown, epoch=epoch)
    except DataError:  # a time outside the range of datetime
        return python_rows(shown, epoch=True)


def _cell(value: object) -> str:
    text = value.isoformat(" ") if isinstance(value, datetime) else str(value)
    return escape(text if len(text) <= CHARACTERS_MAX else f"{text[:CHARACTERS_MAX]}…")


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _count(batches: Sequence[pa.RecordBatch], failed: Exception | None) -> str:
    rows = sum(batch.num_rows for batch in batches)
    if rows > ROWS_MAX:
        return f"The next {ROWS_MAX} rows; more follow."
    if failed is not None:
        return escape(f"The result is not complete: {failed}")
    return "1 row left to fetch." if rows == 1 else f"{rows} rows left to fetch."

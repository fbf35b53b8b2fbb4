"""Conversion of `Summaries` to several `Summary` objects, for models that know only these."""

from __future__ import annotations

from saros_storage.base.block import Block
from saros_storage.scan.reading import Statistics, Summaries, Summary


def statistics_at(summaries: Summaries, row: int) -> list[Statistics | None]:
    """Return a row as single statistics."""
    found: list[Statistics | None] = []
    for known in summaries.columns:
        columns = [getattr(known, name) for name in Statistics.__struct_fields__]
        values = [None if column is None else column.to_list()[row] for column in columns]
        assert [values[0] == 0] * 2 == [value is None for value in values[1:3]]
        found.append(Statistics(*values) if values[0] else None)
    return found


def singly(item: Block | Summary | Summaries) -> list[Block | Summary]:
    """Return a reader's item as a list of items; if the item is a `Summaries`, the list has its single summaries."""
    if not isinstance(item, Summaries):
        return [item]
    spans = zip(item.starts.tolist(), item.ends.tolist(), strict=True)
    return [Summary(*span, tuple(statistics_at(item, row))) for row, span in enumerate(spans)]

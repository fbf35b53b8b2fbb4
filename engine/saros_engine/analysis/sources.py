"""Sources: plan the scans that read a set of series, join the scans by time, and number the columns.

    root.a.d1.s1  root.a.d2.x  root.a.d1.s2      d1 aligned, d2 not
    TimeJoin( Scan d1 (s1, s2), Scan d2 (x) )    columns: d1.s1 0, d1.s2 1, d2.x 2

Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from saros_engine.analysis.scope import Leaf
from saros_engine.plan.expression import InputColumn
from saros_engine.plan.plan import Field, Node, Scan, TimeJoin
from saros_grammar.syntax.ast import PathExpression
from saros_storage.scan.reading import ScanRequest, TimeRange


class Source(msgspec.Struct, frozen=True):
    """A planned scan of some series of one aligned device, or of one series of a device that is not aligned."""

    request: ScanRequest
    leaves: tuple[Leaf, ...]


def source_key(leaf: Leaf) -> tuple[str, str]:
    """Return the key of the scan that reads a series. One scan reads all series with the same key."""
    return leaf.device.path, "" if leaf.device.aligned else leaf.series.measurement


#: A function from the total number of columns of all sources to the number of rows in each block of a source.
BlockRows = Callable[[int], int]


def sources_of(
    leaves: Iterable[Leaf], time: TimeRange, block_rows: BlockRows, *, descending: bool = False
) -> list[Source]:
    """Return one source for each aligned device, and one for each series of the other devices, in order of first use.

    Each series is read only once.
    """
    groups: dict[tuple[str, str], dict[str, Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(source_key(leaf), {}).setdefault(leaf.series.measurement, leaf)
    rows = block_rows(sum(map(len, groups.values())))
    found = []
    for (device, _), members in groups.items():
        chosen = tuple(members.values())
        request = ScanRequest(
            device,
            tuple(members),
            tuple([leaf.series.type for leaf in chosen]),
            chosen[0].device.aligned,
            time,
            descending,
            block_rows=rows,
        )
        found.append(Source(request, chosen))
    return found


def joined(sources: list[Source], *, descending: bool = False) -> Node:
    """Return the scans of the sources (at least one), joined by time."""
    scans: list[Node] = [
        Scan(s.request, tuple([Field(str(leaf.path), leaf.series.type) for leaf in s.leaves])) for s in sources
    ]
    if len(scans) == 1:
        return scans[0]
    fields = tuple(field for scan in scans for field in scan.fields)
    return TimeJoin(tuple(scans), fields, descending)


def column_numbers(sources: list[Source], leaves: Iterable[Leaf]) -> dict[PathExpression, InputColumn]:
    """Return the column of each leaf (a named series) in the join. Two names of the same series share one column."""
    numbers: dict[tuple[str, str], int] = {}
    for source in sources:
        for leaf in source.leaves:
            numbers[leaf.device.path, leaf.series.measurement] = len(numbers)
    return {
        leaf.path: InputColumn(numbers[leaf.device.path, leaf.series.measurement], leaf.series.type) for leaf in leaves
    }

"""Writes through views: a value for a view of one series is written to this series.

    root.name.p.x is a view of root.hall.p.a
    insert into root.name.p(time, x, y) ...   ->   insert into root.name.p(time, y) ...
                                                   insert into root.hall.p(time, a) ...

The parts are written one after another, as separate writes. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from saros_engine.writes.batches import ColumnBatch
from saros_grammar.syntax.ast import Insert, PathExpression
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import split_path, split_series

_Part = TypeVar("_Part")


def parts_of_insert(statement: Insert, sources: Mapping[str, str]) -> list[Insert]:
    """Return an INSERT for each device; `sources` maps the measurements of views to the paths of their series."""
    own = str(statement.device)
    parts = []
    for device, columns in _by_device(own, statement.measurements, sources).items():
        names = tuple(measurement for _, measurement in columns)
        rows = tuple(tuple(row[place] for place, _ in columns) for row in statement.rows)
        path, aligned = PathExpression(split_path(device)), statement.aligned and device == own
        parts.append(replace(statement, device=path, measurements=names, rows=rows, aligned=aligned))
    return parts


def parts_of_batch(batch: ColumnBatch, sources: Mapping[str, str]) -> list[ColumnBatch]:
    """Return a batch for each device; `sources` maps the measurements of views to the paths of their series."""
    columns = list(batch.columns.values())
    parts = []
    for device, chosen in _by_device(batch.device, batch.columns, sources).items():
        aligned = batch.aligned if device == batch.device else None
        own = {measurement: columns[place] for place, measurement in chosen}
        parts.append(replace(batch, device=device, columns=own, aligned=aligned))
    return parts


def _by_device(device: str, names: Iterable[str], sources: Mapping[str, str]) -> dict[str, list[tuple[int, str]]]:
    """Return, for each device to which columns are written, the index and the measurement of each of these columns."""
    found: dict[str, list[tuple[int, str]]] = {}
    for place, name in enumerate(names):
        source = sources.get(name)
        target, measurement = (device, name) if source is None else split_series(source)
        chosen = found.setdefault(target, [])
        if any(measurement == other for _, other in chosen):
            raise UserMistake(
                f"{target}.{measurement} is written twice, by its own name or by views: name it once", code=701
            )
        chosen.append((place, measurement))
    return found


def write_each(parts: Iterable[_Part], write: Callable[[_Part], int]) -> int:
    """Write all parts; return the number of points. The first UserMistake is raised after all parts have been tried."""
    points = 0
    mistake: UserMistake | None = None
    for part in parts:
        try:
            points += write(part)
        except UserMistake as error:
            mistake = mistake or error
    if mistake is not None:
        raise mistake
    return points

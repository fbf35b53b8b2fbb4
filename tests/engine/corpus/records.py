"""The records of a generated file: SQL statements with their answers, and the notation of the values in the answers.

A `Corpus` collects records in the format of `slt.py`. A world has the points of a device's series, `{name: {time:
value}}`. The functions below join, filter and select in plain Python, without using the engine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Series = Mapping[int, Any]
World = Mapping[str, Series]
Row = dict[str, Any]


class Corpus:
    """The records of one file; `story`, one or more lines, is the comment at the head of the file."""

    def __init__(self, story: str) -> None:
        self._parts = ["\n".join("# " + line for line in story.strip().splitlines())]

    def note(self, text: str) -> None:
        """Add a comment between records."""
        self._parts.append("# " + text)

    def ok(self, text: str) -> None:
        self._parts.append(f"statement ok\n{text}")

    def error(self, code: int, words: str, text: str) -> None:
        self._parts.append(f"statement error {code} {words}\n{text}")

    def query(self, text: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        lines = [" | ".join(header), *(" | ".join(map(written, row)) for row in rows)]
        self._parts.append("\n".join(["query", text, "----", *lines]))

    def text(self) -> str:
        return "\n\n".join(self._parts) + "\n"


def written(value: Any) -> str:
    """Return the text of a value in a cell of the answer."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def literal(value: Any) -> str:
    """Return a value as an SQL literal."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else written(value)


def insert(device: str, world: World) -> str:
    """Return the INSERT statement that writes a world's points."""
    times = sorted({time for series in world.values() for time in series})
    rows = (", ".join([str(t), *(literal(s.get(t)) for s in world.values())]) for t in times)
    return f"insert into {device}(time, {', '.join(world)}) values " + ", ".join(f"({row})" for row in rows)


def prepared(story: str, device: str, types: Mapping[str, str], world: World) -> Corpus:
    """Return a corpus that begins with the creation of an aligned device, and the points of a world."""
    corpus = Corpus(story)
    corpus.ok(f"create aligned timeseries {device}({', '.join(f'{name} {type_}' for name, type_ in types.items())})")
    corpus.ok(insert(device, world))
    return corpus


def names_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the series that a Python function takes: its parameters without a default."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]


def joined(world: World, names: Iterable[str]) -> list[Row]:
    """Return a row for each time at which any of the series has a point; missing values are None."""
    chosen = {name: world[name] for name in names}
    times = sorted({time for series in chosen.values() for time in series})
    return [{"time": time} | {name: series.get(time) for name, series in chosen.items()} for time in times]


def call(function: Callable[..., Any], row: Row) -> Any:
    """Return the function's result when it is called with the values of a row."""
    return function(**{name: row[name] for name in names_of(function)})


def strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, changed so that it returns None if an argument is None."""

    def run(**values: Any) -> Any:
        return None if any(value is None for value in values.values()) else function(**values)

    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return run


def selected(
    world: World, items: Sequence[Callable[..., Any]], where: Callable[..., Any] | None = None
) -> list[list[Any]]:
    """Return the result of SELECT `items` WHERE `where`, over the rows of all series that the functions name."""
    named = [name for function in [*items, *([where] if where else [])] for name in names_of(function)]
    rows = [row for row in joined(world, named) if where is None or call(where, row) is True]
    return [[row["time"], *(call(item, row) for item in items)] for row in rows]

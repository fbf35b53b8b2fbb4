"""Short names of result columns, without the leading nodes of paths.

    root.plant.pump1.temperature                    temperature
    avg(root.plant.pump1.temperature)               avg(temperature)
    root.plant.pump1.temperature, and of pump2      pump1.temperature, pump2.temperature

A path keeps its last node. Paths of columns that would get the same name keep as many nodes as necessary to differ. A
name that consists of one quoted node loses the quotes, so that `insert` accepts the column under this name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_QUOTED = r"`(?:[^`]|``)*`"
_NODE = rf"(?:{_QUOTED}|\w+|\*{{1,2}})"
#: Matches paths, and also quoted texts, so that no path is found inside them.
_PATHS = re.compile(rf"(?P<path>(?<![\w.`])root(?:\.{_NODE})+)|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|{_QUOTED}")
_NODES = re.compile(_NODE)


def shortened(names: Sequence[str]) -> list[str]:
    """Return the short names of the columns of one result. Equal names stay equal."""
    kept = dict.fromkeys(names, 1)
    while True:
        short = {name: _with_last_nodes(name, count) for name, count in kept.items()}
        users: dict[str, list[str]] = {}
        for name, found in short.items():
            users.setdefault(found, []).append(name)
        growing = [name for found, same in users.items() if len(same) > 1 for name in same if found != name]
        if not growing:
            return [short[name] for name in names]
        for name in growing:
            kept[name] += 1


def renamed(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of a result with short names."""
    names = shortened(schema.names)
    return schema.empty_table().rename_columns(names).schema, (batch.rename_columns(names) for batch in batches)


def _with_last_nodes(name: str, count: int) -> str:
    """Return a name, with its paths reduced to their last `count` nodes."""

    def last_nodes(found: re.Match[str]) -> str:
        path = found["path"]
        return found[0] if path is None else ".".join(_NODES.findall(path)[-count:])

    short = _PATHS.sub(last_nodes, name)
    is_one_node = short != name and re.fullmatch(_QUOTED, short)
    return short[1:-1].replace("``", "`") if is_one_node else short

"""Maps names: table names to paths of devices, and column names to nodes of paths. Pure.

    schema root.plant, table hall1.`pump 1`   <->   root.plant.hall1.`pump 1`
    table root.plant.hall1.pump1              <->   the same path, without a schema

Table names are paths as in SQL, with back-quotes for nodes that need them. Column names have no quotes.
"""

from __future__ import annotations

import re

_NODE = r"(?:\w+|`(?:[^`]|``)+`)"
_PATH = re.compile(rf"{_NODE}(?:\.{_NODE})*")


def device_path(table: str, schema: str | None) -> str:
    """Return the path of a device. Raises ValueError if the name is not a path."""
    path = table if schema is None or table == "root" or table.startswith("root.") else f"{schema}.{table}"
    if not path.startswith("root.") or _PATH.fullmatch(path) is None:
        raise ValueError(
            f"{path!r} is not a device: a table's name must be a path such as root.plant.pump1, or have a schema such"
            " as root.plant; nodes with other characters than letters, digits and _ need back-quotes"
        )
    return path


def table_name(device: str, schema: str | None) -> str:
    """Return the name of a device in a schema. A device with the path of the database itself keeps its whole path."""
    return device.removeprefix(f"{schema}.") if schema is not None else device


def last_node(path: str) -> str:
    """Return the last node of a path, without quotes."""
    found = re.search(rf"({_NODE})$", path)
    assert found is not None
    node = found[1]
    return node[1:-1].replace("``", "`") if node.startswith("`") else node

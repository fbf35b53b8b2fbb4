"""The template of devices for line protocol: each node is a name, or a variable in braces. Pure: any thread.

    root.{db}.{measurement}           cpu,host=h1,region=eu of database plant     root.plant.cpu
    root.{db}.{host}.{measurement}                                                root.plant.h1.cpu

The caller appends the tags that the template does not name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import join_nodes, quote_node, split_path

DEFAULT_TEMPLATE = "root.{db}.{measurement}"
#: The node of a tag that a series lacks.
MISSING = "_"
_DATABASE, _MEASUREMENT = "db", "measurement"
_VARIABLE = re.compile(r"\{([^{}.]+)\}")


class DeviceTemplate(msgspec.Struct, frozen=True):
    """A parsed template."""

    nodes: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> DeviceTemplate:
        """Parse a template. Raises ValueError, whose message names the expected form."""
        nodes = tuple(text.split("."))
        variables = [node for node in nodes if _VARIABLE.fullmatch(node)]
        if nodes[:2] != ("root", "{db}") or "{measurement}" not in nodes or len(set(variables)) < len(variables):
            raise ValueError(
                f"a path such as {DEFAULT_TEMPLATE}: root, {{db}}, then {{measurement}} and tags in braces"
            )
        for node in nodes[2:]:
            try:
                split_path(f"root.{'x' if node in variables else node}")
            except UserMistake as error:
                raise ValueError(f"nodes that are names, or variables in braces; {node!r} is neither") from error
        return cls(nodes)

    def prefix(self, database: str, measurement: str, tags: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return the path for a series, and the tags of the series that are not in this path."""
        left = dict(tags)
        nodes: list[str] = []
        for node in self.nodes:
            variable = _VARIABLE.fullmatch(node)
            if variable is None:
                nodes.append(node)
            elif variable[1] == _DATABASE:
                nodes.append(quote_node(database))
            elif variable[1] == _MEASUREMENT:
                nodes.append(quote_node(measurement))
            else:
                nodes.append(node_of_tag(left.pop(variable[1], None)))
        return join_nodes(nodes), left


@lru_cache(16)
def parsed_template(text: str) -> DeviceTemplate:
    """Return the parsed template of a text, from a cache. Raises ValueError."""
    return DeviceTemplate.of(text)


def node_of_tag(value: str | None) -> str:
    """Return the node for a tag's value; `value` is None if the series lacks the tag.

    If a value begins with `_`, another `_` is put before it, so that it cannot be confused with `MISSING`.
    """
    if value is None:
        return MISSING
    return quote_node(f"_{value}" if value.startswith("_") else value)

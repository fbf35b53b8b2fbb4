"""Routes, which map the topics of messages to devices and series.

    --topic 'plant/{area}/+'  -->  subscription plant/+/+     fields: {area} or {1}, {2}
    --path 'root.plant.{area}.{2}'   message of plant/hall1/pump 3  -->  root.plant.hall1.`pump 3`

A field is replaced by one level of the topic, even within a node (`root.plant.area_{1}`). The field of `#` is replaced
by all remaining levels, each of which becomes a node. Values of fields are quoted where SQL requires quotes. Pure: any
thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from saros_shell.mqtt.broker_address import MqttUsageError
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import quote_node, split_path, unquote_node

#: The maximum length of a topic in the MQTT protocol.
_TOPIC_BYTES_MAX = 65_535
#: `$share/group/filter` distributes the messages of a filter over the members of a group.
_SHARED = re.compile(r"\$share/[^/+#]+/(?=.)")
_FIELD = re.compile(r"\{(\w+)\}")


class BadMessage(Exception):
    """A message that cannot be written: its topic or its payload is wrong."""


class TopicFilter(msgspec.Struct, frozen=True):
    """A topic filter, and the fields that its wildcards fill."""

    #: The text to subscribe to.
    subscription: str
    pattern: re.Pattern[str]
    #: The names of each wildcard: its number, and the name that the user gave it, if any.
    fields: tuple[tuple[str, ...], ...]
    #: True if the last wildcard is `#`.
    multi_level: bool

    def match(self, topic: str) -> dict[str, list[str]] | None:
        """Return the levels of the topic for each field, or None if the topic does not match."""
        found = self.pattern.fullmatch(topic)
        if found is None:
            return None
        levels = [[value or ""] for value in found.groups()]
        if self.multi_level:
            rest = found.groups()[-1]
            levels[-1] = [] if rest is None else rest.split("/")
        return {name: value for names, value in zip(self.fields, levels, strict=True) for name in names}


def parse_topic(text: str) -> TopicFilter:
    """Return the filter that --topic describes. Raises MqttUsageError."""
    shared = _SHARED.match(text)
    prefix = shared.group() if shared else ""
    levels = text.removeprefix(prefix).split("/")
    if not text or "\0" in text or len(text.encode()) > _TOPIC_BYTES_MAX:
        raise MqttUsageError(
            f"--topic {text[:40]!r} is not a topic: it is empty, too long, or contains a null character"
        )
    filters: list[str] = []
    patterns: list[str] = []
    fields: list[tuple[str, ...]] = []
    for number, level in enumerate(levels, 1):
        named = _FIELD.fullmatch(level)
        if level == "#" and number == len(levels):
            patterns.append("(?:/(.*))?" if patterns else "(.*)")
            fields.append((str(len(fields) + 1),))
        elif level == "+" or named:
            patterns.append(("/" if patterns else "") + "([^/]*)")
            fields.append((str(len(fields) + 1), *(named.groups() if named else ())))
        elif re.search(r"[+#{}]", level):
            raise MqttUsageError(
                f"--topic {text}: level {level!r} is neither a plain text nor + nor {{name}}; # may only be the last"
            )
        else:
            patterns.append(("/" if patterns else "") + re.escape(level))
        filters.append("+" if named else level)
    _check_names(text, fields)
    pattern = re.compile("".join(patterns), re.DOTALL)
    return TopicFilter(prefix + "/".join(filters), pattern, tuple(fields), levels[-1] == "#")


def _check_names(text: str, fields: Sequence[tuple[str, ...]]) -> None:
    names = [name for of_one in fields for name in of_one]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MqttUsageError(f"--topic {text}: two wildcards are named {twice}; numbers count all wildcards")


class _Field(msgspec.Struct, frozen=True):
    """A field within a node."""

    name: str


#: The texts and fields that form one node.
_Node = tuple["str | _Field", ...]


class PathTemplate(msgspec.Struct, frozen=True):
    """A path with fields."""

    nodes: tuple[_Node, ...]

    def fill(self, fields: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the canonical nodes of the path. Raises BadMessage if a level of the topic is empty."""
        filled: list[str] = []
        for node in self.nodes:
            if len(node) == 1 and isinstance(node[0], _Field):
                filled += fields[node[0].name]
            else:
                filled.append("".join(part if isinstance(part, str) else fields[part.name][0] for part in node))
        if "" in filled:
            raise BadMessage("a level of the topic is empty, but a node of a path cannot be")
        return [quote_node(node) for node in filled]


def parse_template(text: str, topic: TopicFilter) -> PathTemplate:
    """Return the template that --path describes. Its fields are those of a topic. Raises MqttUsageError."""
    marker = "field"
    while marker in text:
        marker += "_"
    names = _FIELD.findall(text)
    known = [name for of_one in topic.fields for name in of_one]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        there = ", ".join(f"{{{name}}}" for name in known) or "none"
        raise MqttUsageError(
            f"--path {text}: {{{unknown}}} is not a field of --topic {topic.subscription}; it has {there}"
        )
    numbers = iter(range(len(names)))
    try:
        nodes = split_path(_FIELD.sub(lambda _: f"{marker}{next(numbers)}{marker}", text))
    except UserMistake as error:
        raise MqttUsageError(f"--path {text}: {str(error).replace(marker, '')}") from None
    template = PathTemplate(tuple(_node_of(unquote_node(node), marker, names) for node in nodes))
    if template.nodes[0] != ("root",):
        raise MqttUsageError(f"--path {text} does not begin with root, such as root.plant.{{1}}")
    last = topic.fields[-1][0] if topic.multi_level else None
    if any(len(node) > 1 and _Field(last or "") in node for node in template.nodes):
        raise MqttUsageError(f"--path {text}: {{{last}}} is several levels, so it must be a node of its own")
    return template


def _node_of(node: str, marker: str, names: Sequence[str]) -> _Node:
    parts = re.split(rf"{marker}(\d+){marker}", node)
    return tuple(
        _Field(names[int(part)]) if number % 2 else part for number, part in enumerate(parts) if part or number % 2
    )


class Route(msgspec.Struct, frozen=True):
    """A filter, and the path of its messages. The path is None if the payload names the devices."""

    topic: TopicFilter
    path: PathTemplate | None


#: The maximum number of topics whose paths are cached.
_TOPICS_CACHED = 100_000


class Router:
    """Routes in order of preference: the first route whose filter matches a topic gives the path of the topic."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._paths: dict[str, tuple[str, ...] | None] = {}

    def path_of(self, topic: str) -> tuple[str, ...] | None:
        """Return the canonical nodes of a topic's path, or None if the payload names the devices.

        Raises BadMessage if no route matches, or if the topic yields no valid path.
        """
        if topic not in self._paths:
            if len(self._paths) >= _TOPICS_CACHED:
                self._paths.clear()
            self._paths[topic] = self._find(topic)
        return self._paths[topic]

    def _find(self, topic: str) -> tuple[str, ...] | None:
        for route in self.routes:
            fields = route.topic.match(topic)
            if fields is not None:
                return None if route.path is None else tuple(route.path.fill(fields))
        raise BadMessage("no --topic matches; the broker kept an earlier subscription of this client id")

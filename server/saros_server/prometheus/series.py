"""Devices of Prometheus' series: each series is a device with the measurement `value`; its path contains all labels.

    up{instance="a:9100", job="node"}  <-->  root.prometheus.up.`{instance="a:9100",job="node"}`
    up                                 <-->  root.prometheus.up.`{}`
    {job="node"}                       <-->  root.prometheus.`{job="node"}`            a series without a name

The last node has the labels in PromQL's syntax, sorted by name. So every node derives the same path from the labels,
and the labels from the path, without any stored state. A label with an empty value is treated as missing.

Pure; results are cached. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from google.protobuf.message import DecodeError

from saros_storage.base.paths import PATH_CHARACTERS_MAX, join_nodes, quote_node, split_path, unquote_node
from saros_wire.generated.prometheus_pb2 import TimeSeries

#: The path above all devices.
ROOT = ("root", "prometheus")
#: The measurement of the samples.
MEASUREMENT = "value"
#: The label with the name of the metric.
NAME_LABEL = "__name__"
#: The maximum number of cached series, and the maximum size of the labels of a cached series in bytes.
_CACHED_SERIES = 65_536
_CACHED_KEY_BYTES = 1_024
_PLAIN_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LABEL = re.compile(r'(?:([a-zA-Z_][a-zA-Z0-9_]*)|"((?:[^"\\]|\\.)*)")="((?:[^"\\]|\\.)*)"(,|\Z)', re.DOTALL)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Series(msgspec.Struct, frozen=True):
    """A series to write."""

    device: str
    #: All labels except the name.
    tags: Mapping[str, str]


class Refusal(msgspec.Struct, frozen=True):
    """The reason why a series is not written."""

    reason: str


def series_of(key: bytes) -> Series | Refusal:
    """Return the series of encoded labels: the fields of a TimeSeries, as they are in a request."""
    return _remembered_series(key) if len(key) <= _CACHED_KEY_BYTES else _series(key)


def _series(key: bytes) -> Series | Refusal:
    try:
        pairs = [(label.name, label.value) for label in TimeSeries.FromString(key).labels]
    except DecodeError:
        return Refusal("its labels are not well-formed, or not UTF-8: send them as remote write 1.0 says")
    labels = dict(pairs)
    if len(labels) < len(pairs):
        return Refusal(f"series {_shortened(pairs)} has a label twice: send each label once")
    if "" in labels:
        return Refusal(f"series {_shortened(pairs)} has a label without a name")
    labels = {name: value for name, value in labels.items() if value}
    if not labels:
        return Refusal("it has no labels: send at least __name__")
    device = device_of(labels)
    if "\0" in device:
        return Refusal(f"series {_shortened(pairs)} has a zero byte in a label: no path may have one")
    if len(device) + len(MEASUREMENT) >= PATH_CHARACTERS_MAX:
        size = f"{len(device)} characters; at most {PATH_CHARACTERS_MAX - len(MEASUREMENT) - 1} are allowed"
        return Refusal(f"series {_shortened(pairs)}: its path has {size}: shorten or drop labels")
    labels.pop(NAME_LABEL, None)
    return Series(device, labels)


_remembered_series = lru_cache(_CACHED_SERIES)(_series)


def device_of(labels: Mapping[str, str]) -> str:
    """Return the path of a series with these labels, none of which is empty."""
    name = labels.get(NAME_LABEL)
    others = sorted((name, value) for name, value in labels.items() if name != NAME_LABEL)
    text = "{" + ",".join(f"{_written_name(name)}={_quoted(value)}" for name, value in others) + "}"
    nodes = (text,) if name is None else (name, text)
    return join_nodes((*ROOT, *map(quote_node, nodes)))


@lru_cache(_CACHED_SERIES)
def labels_of(device: str) -> Mapping[str, str] | None:
    """Return the labels of the series that a device stores, sorted by their names; None if it stores none."""
    nodes = split_path(device)
    if nodes[: len(ROOT)] != ROOT or len(nodes) not in {len(ROOT) + 1, len(ROOT) + 2}:
        return None
    *name, text = map(unquote_node, nodes[len(ROOT) :])
    labels = _parsed(text)
    if labels is None:
        return None
    if name:
        labels[NAME_LABEL] = name[0]
    is_series = labels and "" not in labels and "" not in labels.values() and device_of(labels) == device
    return dict(sorted(labels.items())) if is_series else None


def _parsed(text: str) -> dict[str, str] | None:
    """Return the labels in a text that is enclosed in braces, or None if it is not such a text."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    labels, inner, at = dict[str, str](), text[1:-1], 0
    while at < len(inner):
        found = _LABEL.match(inner, at)
        if found is None:
            return None
        plain, quoted, value, _ = found.groups()
        labels[plain or _unescaped(quoted)] = _unescaped(value)
        at = found.end()
    return labels


def _written_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text)


def _shortened(pairs: list[tuple[str, str]]) -> str:
    text = ", ".join(f"{name}={value!r}" for name, value in pairs)
    return text if len(text) <= 200 else text[:200] + "..."

"""Conversion between device paths and the segments that identify a device in a file, and the order of names in a file.

    canonical path       segments (v4)                  rule
    root.sg.d1           ("root.sg", "d1")              up to 3 nodes: all but the last, then the last
    root.a.b.c.d         ("root.a.b", "c", "d")         more: the first 3 joined, then one segment per node
    root.`a.b`.d         ("root.`a.b`", "d")            a back-quoted node is one node
    weather.`north 1`    ("weather", "north 1")         table model: table name, then tag values; null reads as `null`

A v3 file stores the path of a device as a single segment. Devices are compared segment by segment: null comes before
every string, a prefix before its extensions, and strings are ordered by UTF-16 code units, as in Java.

Pure: any thread.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache

from saros_storage.base.paths import quote_node, unquote_node
from saros_storage.tsfile.structure.format import Cursor, uvar, vstr

Segments = tuple[str | None, ...]

_NODE = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
#: Text that is already canonical: plain ASCII identifiers, joined by dots.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
#: Maximum number of nodes that are joined into the first segment of a device id.
_JOINED_NODES = 3
#: The node that represents a null tag value in a path.
_NULL_NODE = "null"


def segments_of_path(path: str) -> Segments:
    """Return the segments of a device given by its canonical path."""
    nodes = _split(path)
    if nodes[0] != "root":
        return tuple(unquote_node(node) for node in nodes)
    if len(nodes) == 1:
        return (path,)
    joined = min(len(nodes) - 1, _JOINED_NODES)
    return (".".join(nodes[:joined]), *nodes[joined:])


def path_of_segments(segments: Segments) -> str:
    """Return the canonical path of a device given by its segments. Trailing null segments are dropped."""
    while len(segments) > 1 and segments[-1] is None:
        segments = segments[:-1]
    texts = [_NULL_NODE if s is None else s for s in segments]
    path = ".".join(texts)
    if is_tree(segments) or path == "root":
        return path if _PLAIN.fullmatch(path) else ".".join(_canonical_node(n) for n in _split(path))
    return ".".join(quote_node(t) for t in texts)


def is_tree(segments: Segments) -> bool:
    """Return whether the device belongs to the tree model."""
    return segments[0] is not None and segments[0].startswith("root.")


@lru_cache(maxsize=65_536)
def canonical_measurement(name: str) -> str:
    """Return the canonical form of a measurement's name in a file. The time column's empty name stays empty."""
    return name if not name or (_PLAIN.fullmatch(name) and "." not in name) else _canonical_node(name)


def _canonical_node(node: str) -> str:
    quoted = _NODE.fullmatch(node) and node.startswith("`")
    return quote_node(unquote_node(node) if quoted else node)


def _split(path: str) -> list[str]:
    if "`" not in path:
        return path.split(".")
    nodes = _NODE.findall(path)
    # The quotes are unpaired, so neither Saros nor IoTDB wrote this path. Any split that preserves the text is
    # acceptable.
    return nodes if ".".join(nodes) == path else path.split(".")


def encode_segments(segments: Segments) -> bytes:
    """Encode a v4 DeviceID."""
    return uvar(len(segments)) + b"".join(map(vstr, segments))


def decode_segments(cursor: Cursor, *, version_3: bool) -> Segments:
    """Read a DeviceID of either version; it has at least one segment."""
    if version_3:
        return (cursor.name(),)
    count = cursor.uvar()
    if not 0 < count <= cursor.rest:
        raise cursor.corrupt(f"a device of {count} segments")
    return tuple(cursor.vstr() for _ in range(count))


def name_key(name: str) -> str:
    """Return a string whose code-point order equals the name's UTF-16 order."""
    if name.isascii() or max(name) < "\ud800":
        return name
    raw = name.encode("utf-16-be", "surrogatepass")
    return "".join(map(chr, struct.unpack(f">{len(raw) // 2}H", raw)))


def segments_key(segments: Segments) -> tuple[str, ...]:
    """Return the sort key of a device: null sorts before every string."""
    return tuple("" if s is None else "\0" + name_key(s) for s in segments)


def bloom_key(segments: Sequence[str | None], measurement: str) -> str:
    """Return the text that the bloom filter hashes for a series. `measurement` is empty for the time column."""
    return ".".join([*(_NULL_NODE if s is None else s for s in segments), measurement])

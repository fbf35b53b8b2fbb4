"""Paths as text: nodes, quoting, patterns.

    content      a.b          the name of a node
    node         `a.b`        its canonical text: back-quoted only if it is not a plain identifier
    path         root.sg.`a.b`.s1        canonical nodes joined by dots; the form of device paths and measurement names
    pattern      root.*.d1   root.sg.**   root.sg.d*      `*` is one level, `**` one or more, `d*` a glob within a level

A plain identifier consists of letters (any script), digits and `_`, and does not look like a number. Canonical text is
unique: two paths are equal if and only if their canonical texts are equal.

Pure; results are cached. Any thread.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from saros_storage.base.errors import UserMistake

_PLAIN = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(e\d+)?", re.IGNORECASE)
#: Matches a path whose nodes are plain identifiers that begin with a letter or `_`. Such a path is canonical.
_PLAIN_PATH = re.compile(r"root(?:\.[^\W\d]\w*)*")
#: Matches a text of many such paths, one per line. The quantifiers are possessive, since backtracking never leads to a
#: match.
_PLAIN_PATHS = re.compile(r"root(?:\.[^\W\d]\w*+)*+(?:\nroot(?:\.[^\W\d]\w*+)*+)*+")
_NODE = re.compile(r"`(?:[^`]|``)*`|[^.`]+")
#: Maximum length of a path: far longer than any real one, short enough that a malicious text is cheap to refuse.
PATH_CHARACTERS_MAX = 8_192
_CACHED_PATHS = 65_536


def quote_node(content: str) -> str:
    """Return the canonical text of a node named `content`."""
    if _PLAIN.fullmatch(content) and not _NUMBER.fullmatch(content):
        return content
    return "`" + content.replace("`", "``") + "`"


def unquote_node(node: str) -> str:
    """Return the name of a canonical node."""
    return node[1:-1].replace("``", "`") if node.startswith("`") else node


def sql_node(node: str) -> str:
    """Return a canonical node in back-quotes, for SQL where no dot precedes it and `time` would be a keyword."""
    return node if node.startswith("`") else f"`{node}`"


def join_nodes(nodes: Sequence[str]) -> str:
    """Join canonical nodes to a canonical path."""
    return ".".join(nodes)


@lru_cache(_CACHED_PATHS)
def split_path(text: str) -> tuple[str, ...]:
    """Return the canonical nodes of a path: `root.`a`.b` gives ("root", "a", "b"). Wildcards are not allowed.

    Raises UserMistake 509 with the problem and its position.
    """
    nodes = _split(text)
    for node in nodes:
        if "*" in node and not node.startswith("`"):
            raise _illegal(text, f"{node} is a wildcard, but a single path is required")
    return nodes


def parent_of(path: str) -> str:
    """Return a canonical path of several nodes without its last node."""
    return join_nodes(split_path(path)[:-1]) if path.endswith("`") else path.rpartition(".")[0]


@lru_cache(_CACHED_PATHS)
def split_series(text: str) -> tuple[str, str]:
    """Split a series path into (device, measurement). Raises UserMistake 509."""
    nodes = split_path(text)
    if len(nodes) < 3:
        raise _illegal(text, "a series needs at least root, a device and a measurement")
    return join_nodes(nodes[:-1]), nodes[-1]


def plain_nodes(paths: Sequence[str]) -> frozenset[str] | None:
    """Return all nodes of the paths if every path matches `_PLAIN_PATH`, otherwise None.

    For many paths, this costs much less than splitting each of them.
    """
    text = "\n".join(paths)
    if text.count("\n") >= max(len(paths), 1) or not _PLAIN_PATHS.fullmatch(text):
        return None
    if max(map(len, paths)) > PATH_CHARACTERS_MAX:
        return None
    return frozenset(text.replace("\n", ".").split("."))


def check_path(text: str) -> None:
    """Raise UserMistake 509 if a path is too long, or contains a zero byte, which ends a name in other programs."""
    check_length(text)
    if "\0" in text:
        raise _illegal(text.replace("\0", "\\0"), "it has a zero byte, written \\0 here")


def check_length(text: str) -> None:
    """Raise UserMistake 509 if a path is too long."""
    if len(text) > PATH_CHARACTERS_MAX:
        raise _illegal(text[:40] + "...", f"it has {len(text)} characters; at most {PATH_CHARACTERS_MAX} are allowed")


def _split(text: str) -> tuple[str, ...]:
    check_path(text)
    if _PLAIN_PATH.fullmatch(text):
        return tuple(text.split("."))
    nodes: list[str] = []
    position = 0
    while True:
        match = _NODE.match(text, position)
        if match is None:
            raise _illegal(text, f"a node is missing at character {position + 1}")
        nodes.append(_canonical(match.group(), text))
        position = match.end()
        if position == len(text):
            break
        if text[position] != ".":
            raise _illegal(text, f"a dot is missing at character {position + 1}")
        position += 1
    if nodes[0] != "root":
        raise _illegal(text, "it does not begin with root")
    return tuple(nodes)


def _canonical(node: str, text: str) -> str:
    if node.startswith("`"):
        content = unquote_node(node)
        if not content:
            raise _illegal(text, "a node is empty")
        return quote_node(content)
    if not _PLAIN.fullmatch(node.replace("*", "_")) or _NUMBER.fullmatch(node):
        raise _illegal(text, f"{node!r} must be back-quoted: {quote_node(node)}")
    return node


def _illegal(text: str, reason: str) -> UserMistake:
    return UserMistake(f"{text} is not a legal path: {reason}", code=509)


class PathPattern:
    """A path in which nodes may be wildcards. Compared and printed by `text`."""

    __slots__ = ("_globs", "has_wildcard", "nodes", "text")

    def __init__(self, nodes: Sequence[str]) -> None:
        #: Canonical nodes and wildcards.
        self.nodes = tuple(nodes)
        self.text = join_nodes(self.nodes)
        self.has_wildcard = any(_is_wild(n) for n in self.nodes)
        self._globs = tuple(_glob(n) for n in self.nodes)

    @property
    def fixed_nodes(self) -> Sequence[str]:
        """The nodes before the first wildcard."""
        return tuple(itertools.takewhile(lambda node: not _is_wild(node), self.nodes))

    def matches(self, nodes: Sequence[str]) -> bool:
        """Return whether the pattern matches the path of these canonical nodes."""
        return self.accepts(self._after(nodes))

    def reaches(self, nodes: Sequence[str]) -> bool:
        """Return whether the pattern matches the path of these canonical nodes, or may match a path below it."""
        return bool(self._after(nodes))

    def covers(self, nodes: Sequence[str]) -> bool:
        """Return whether the pattern matches the path of these canonical nodes, or everything below it."""
        reached = self._after(nodes)
        return self.accepts(reached) or (self.nodes[-1] == "**" and len(self.nodes) - 1 in reached)

    def overlaps(self, nodes: Sequence[str]) -> bool:
        """Return whether the pattern may match the path of these canonical nodes, or a path above or below it."""
        reached = self.start()
        for node in nodes:
            reached = self.advance(reached, node)
            if not reached or self.accepts(reached):
                break
        return bool(reached)

    def _after(self, nodes: Sequence[str]) -> frozenset[int]:
        reached = self.start()
        for node in nodes:
            reached = self.advance(reached, node)
            if not reached:
                break
        return reached

    # A pattern is an automaton. Its state is the set of positions in the pattern that the nodes read until now may have
    # reached. The time for a match is therefore proportional to the length of the path times the length of the pattern,
    # regardless of the number of `**`. A walk of the schema tree stops where the set is empty.

    def start(self) -> frozenset[int]:
        """Return the state before the first node."""
        return frozenset((0,))

    def advance(self, reached: frozenset[int], node: str) -> frozenset[int]:
        """Return the state after one more node; if it is empty, no path below that node can match."""
        after = set()
        for position in reached:
            if position > 0 and self.nodes[position - 1] == "**":
                after.add(position)
            if position < len(self.nodes) and self._fits(position, node):
                after.add(position + 1)
        return frozenset(after)

    def accepts(self, reached: frozenset[int]) -> bool:
        """Return whether a path that ends in this state matches."""
        return len(self.nodes) in reached

    def accepts_after(self, reached: frozenset[int], node: str) -> bool:
        """Return `accepts(advance(reached, node))`, but faster."""
        last = len(self.nodes)
        if self.accepts_below(reached):
            return True
        return last - 1 in reached and self._fits(last - 1, node)

    def accepts_below(self, reached: frozenset[int]) -> bool:
        """Return whether every path below the nodes that led to this state matches."""
        return len(self.nodes) in reached and self.nodes[-1] == "**"

    def _fits(self, position: int, node: str) -> bool:
        wanted = self.nodes[position]
        if wanted in ("*", "**"):
            return True
        glob = self._globs[position]
        return wanted == node if glob is None else glob.fullmatch(unquote_node(node)) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathPattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"PathPattern({self.text})"


def _is_wild(node: str) -> bool:
    return "*" in node and not node.startswith("`")


def _glob(node: str) -> re.Pattern[str] | None:
    if not _is_wild(node) or node in ("*", "**"):
        return None
    first, *between, last = (re.escape(part) for part in re.split(r"\*+", node))
    # An atomic group (?>) takes each text between two stars at its first occurrence, so there is no backtracking.
    return re.compile("".join([first, *(f"(?>.*?{part})" for part in between), f".*{last}"]), re.DOTALL)


@lru_cache(_CACHED_PATHS)
def parse_pattern(text: str) -> PathPattern:
    """Parse a pattern. Raises UserMistake 509."""
    return PathPattern(_split(text))

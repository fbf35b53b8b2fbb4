"""Texts for the grammar's tests: statements of the fixture files, and of the conformance sample if it exists."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path

import msgspec

from saros_grammar.syntax.ast import Duration, Literal, PathExpression

TESTDATA = Path(__file__).parent / "testdata"
SAMPLE = Path(__file__).parents[3] / "shared" / "conformance" / "sample.jsonl"


def cases(path):
    """Return (input, output) of each case. A case is the input, a line with `----`, the output, and an empty line."""
    blocks = path.read_text(encoding="utf-8").split("\n\n")
    found = []
    for block in blocks:
        if block.strip() and not block.startswith("#"):
            text, _, output = block.strip("\n").partition("\n----")
            found.append((text, output.removeprefix("\n")))
    return found


def fixture_statements():
    """Return every statement of the fixture files, including invalid statements."""
    return [text for path in sorted(TESTDATA.glob("*.txt")) for text, _ in cases(path)]


def sample_statements():
    """Return (kind, text) of each statement of the sample; the kind is setup, query or error."""
    found = {}
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["type"] == "setup":
            found.update(dict.fromkeys(row["statements"] or (), "setup"))
        else:
            found[row.get("query") or row["statement"]] = row["type"]
    return [(kind, text) for text, kind in found.items()]


def show(node):
    """Return a short text of a tree: the non-default fields, the nodes of paths, the kinds and values of literals."""
    if isinstance(node, PathExpression):
        return "<" + "|".join(node.nodes) + ">"
    if isinstance(node, Literal):
        value = show(node.value) if isinstance(node.value, Duration) else repr(node.value)
        return f"{node.kind.value} {value}" + ("" if node.text == value else f" as {node.text}")
    if isinstance(node, Duration):
        return f"{node.months}mo+{node.nanoseconds}ns"
    if isinstance(node, Enum):
        return node.value
    if isinstance(node, tuple):
        return "[" + ", ".join(show(part) for part in node) + "]"
    if isinstance(node, msgspec.Struct):
        names = node.__struct_fields__
        defaults = dict(zip(reversed(names), reversed(node.__struct_defaults__), strict=False))
        parts = [
            f"{name}={show(getattr(node, name))}"
            for name in names
            if name not in defaults or getattr(node, name) != defaults[name]
        ]
        return f"{type(node).__name__}({', '.join(parts)})"
    return repr(node)

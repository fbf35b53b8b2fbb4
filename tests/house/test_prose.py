"""The language of comments and docstrings: words typical of unclear sentences must not become more frequent."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from house.source_tree import ROOT, SOURCES, trees

pytestmark = pytest.mark.slow

MARKERS = tuple(
    map(
        re.compile,
        (
            r"\b[Ww]ho(ever)?\b",  # for a thing
            r"(^|[:;,] |\b(of|to|by|for|in|with|on) )[Ww]hat\b",  # as a noun
            r"\banew\b",
            r"\bso (many|long|much|far|often|few|large|big|old)\b(?! (that|as))",
            r"\blet(s|ting)? go\b",
            r"\bof (now|before|then|today)\b",
            r"\bat hand\b",
            r"(^|\. )Else\b",
            r"\b(amid|beside|behind|whereof|thereof|therein|oftener)\b",
            r"\bis none\b",
        ),
    )
)
#: The sources of the rooms, and all files of tests and benchmarks.
FILES = [*SOURCES, *(path for folder in ("benchmarks", "tests") for path in sorted((ROOT / folder).rglob("*.py")))]
#: The allowed number of sentences with such words, by room or folder. Lower a number after a rewrite; never raise it.
ALLOWED = {
    "benchmarks": 0,
    "cluster": 0,
    "driver": 0,
    "engine": 0,
    "grammar": 0,
    "scheduler": 0,
    "server": 0,
    "shell": 0,
    "spark": 0,
    "storage": 0,
    "sync": 0,
    "tests": 0,
    "wire": 0,
}


@cache
def tree_of(path: Path) -> ast.Module:
    return trees().get(path) or ast.parse(path.read_text(encoding="utf-8"))


def documentation(path: Path) -> Iterator[str]:
    """Yield each docstring, and each run of consecutive comment lines as one text."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    run: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1:
                yield " ".join(run)
                run = []
            run.append(token.string.lstrip("#:").strip())
            last = token.start[0]
    yield " ".join(run)


def sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith("    "):  # an indented paragraph is a drawing
            yield from re.split(r"(?<=[.:;?!])\s+(?=[A-Z`])", " ".join(paragraph.split()))


def is_marked(sentence: str) -> bool:
    return any(marker.search(sentence) for marker in MARKERS)


def test_no_room_has_more_marked_sentences_than_before() -> None:
    found = Counter(
        path.relative_to(ROOT).parts[0]
        for path in FILES
        for text in documentation(path)
        for sentence in sentences(text)
        if is_marked(sentence)
    )
    assert {} == {room: (count, ALLOWED[room]) for room, count in found.items() if count > ALLOWED[room]}


#: The allowed number of classes whose docstring only refers to another docstring, by room. Never raise a number.
REFERRING = {
    "benchmarks": 0,
    "cluster": 0,
    "driver": 0,
    "engine": 0,
    "grammar": 0,
    "scheduler": 0,
    "server": 0,
    "shell": 0,
    "spark": 0,
    "storage": 0,
    "sync": 0,
    "tests": 11,
    "wire": 0,
}


def test_no_room_has_more_classes_that_only_refer_to_another_docstring() -> None:
    found = Counter(
        path.relative_to(ROOT).parts[0]
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and (ast.get_docstring(node) or "").startswith("See ")
    )
    assert {} == {room: (count, REFERRING[room]) for room, count in found.items() if count > REFERRING[room]}

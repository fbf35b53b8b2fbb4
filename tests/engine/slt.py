"""Files of SQL statements with their expected answers, in the style of sqllogictest.

    # a comment
    statement ok                    the statement below succeeds
    statement error 701 some words  it fails with this code, and the error message contains the words
    query                           it returns the header and rows below the line ----, with cells separated by " | "

A record ends at an empty line; comments can precede it. Each file starts with an empty database.
`PYTHONPATH=tests python tests/engine/slt.py FILE` prints the file with the current answers, for review.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from engine.embedded_engine import Engine

SEPARATOR = " | "
_RESULT = "----"


@dataclass(frozen=True)
class Record:
    """One record of a file: its first line, its text, and the lines of its result."""

    kind: str
    text: str
    expected: list[str]


def parse(content: str) -> list[Record]:
    """Return the records of a file's content; comments become separate records."""
    records = []
    for block in content.split("\n\n"):
        lines = block.strip("\n").split("\n")
        said = list(takewhile(lambda line: line.startswith("#"), lines))
        if said:
            records.append(Record("#", "\n".join(said), []))
        head, *rest = lines[len(said) :] or ["#"]
        cut = rest.index(_RESULT) if _RESULT in rest else len(rest)
        if rest:
            records.append(Record(head, " ".join(rest[:cut]), rest[cut + 1 :]))
    return records


def problem(engine: Engine, record: Record) -> str | None:
    """Return a description of a wrong answer to a record; None if the answer is right."""
    words = record.kind.split()
    if words == ["query"]:
        got = answer(engine, record.text)
        return None if got == record.expected else "\n".join(["answers", *got, "and not", *record.expected])
    if words[:2] == ["statement", "ok"]:
        engine.ask(record.text)
        return None
    assert words[:2] == ["statement", "error"], f"what is {record.kind!r}?"
    try:
        engine.ask(record.text)
    except Exception as error:  # noqa: BLE001
        code, _, part = record.kind.removeprefix("statement error ").partition(" ")
        known = str(getattr(error, "code", None)) == code and part in str(error)
        return None if known else f"fails with {getattr(error, 'code', None)} {error}"
    return "succeeds"


def answer(engine: Engine, text: str) -> list[str]:
    """Return the header and the rows of a statement's answer as lines."""
    header, rows = engine.ask(text)
    return [SEPARATOR.join(header), *(SEPARATOR.join(map(_cell, row)) for row in rows)]


def _cell(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def rewritten(path: Path) -> str:
    """Return the text of the file with the current answers."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder))
        for record in parse(path.read_text()):
            if record.kind == "#":
                parts.append(record.text)
                continue
            try:
                lines = answer(engine, record.text)
            except Exception as error:  # noqa: BLE001
                parts.append(f"statement error {getattr(error, 'code', None)} {error}\n{record.text}")
                continue
            shown = [record.text, _RESULT, *lines] if record.kind == "query" else [record.text]
            parts.append("\n".join([record.kind, *shown]))
        engine.close()
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rewritten(Path(sys.argv[1])))

"""The docs describe every function by a sentence and by an example with its result, in a table or a section.

`test_docs_examples` checks the results.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from saros_engine.functions.registry import AGGREGATES, FUNCTIONS
from saros_engine.transforms import POINT_FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "sql" / "functions.md").read_text(encoding="utf-8")
NAMES = [*AGGREGATES, *FUNCTIONS, *POINT_FUNCTIONS]


@dataclass(frozen=True, slots=True)
class Entry:
    """The description of a function, which may have several names."""

    names: list[str]
    meaning: str
    example: str
    answer: str


def entries() -> list[Entry]:
    rows = re.findall(r"^\| (`\w+`\(.*) \| (.*) \| `([^`]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    sections = re.findall(r"^####? (`[^\n]*)\n\n(.+?)\n\n```sql\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.M | re.S)
    return [Entry(re.findall(r"`(\w+)`\(", head), *rest) for head, *rest in rows + sections]


def test_every_function_has_one_description() -> None:
    described = [name for entry in entries() for name in entry.names]
    assert sorted(described) == sorted(NAMES)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.names[0])
def test_a_description_is_a_sentence_with_an_answered_example(entry: Entry) -> None:
    assert re.match(r"[A-Z0-9].+\.", entry.meaning)
    assert any(f"{name}(" in entry.example for name in entry.names)
    assert entry.answer.strip()

"""Expressions are printed as equivalent SQL: parsing the printed text and printing it again gives the same text."""

from __future__ import annotations

import pytest
from grammar.corpus import SAMPLE, fixture_statements, sample_statements

from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Expression, Select
from saros_grammar.syntax.errors import ParseError

#: Printed texts that cannot be parsed: `--` begins a comment, and names that are keywords lose their backquotes.
ELSEWHERE = {"--a", "--1", "root", "time"}


def expressions(texts: list[str]) -> list[Expression]:
    found: dict[str, Expression] = {}
    for text in texts:
        if "?" in text or not text.lower().lstrip().startswith("select"):
            continue
        try:
            select = parse(text).statement
        except ParseError:
            continue
        if isinstance(select, Select):
            parts = [item.expression for item in select.items]
            parts += [part for part in (select.where, select.having) if part is not None]
            found.update({str(part): part for part in parts})
    return [part for text, part in found.items() if text not in ELSEWHERE]


def check(parts: list[Expression]) -> None:
    assert len(parts) > 50
    wrong = []
    for part in parts:
        statement = parse(f"select {part} from root.a").statement
        assert isinstance(statement, Select)
        if str(statement.items[0].expression) != str(part):
            wrong.append(str(part))
    assert wrong == []


def test_what_the_fixtures_hold_prints_as_sql() -> None:
    check(expressions(fixture_statements()))


@pytest.mark.skipif(not SAMPLE.exists(), reason="conformance/sample.jsonl is not here")
def test_what_the_sample_holds_prints_as_sql() -> None:
    check(expressions([text for _, text in sample_statements()]))


@pytest.mark.parametrize(
    "text",
    [
        "not (a between 1 and 2)",
        "!(a is not null)",
        "not (a in (1, 2))",
        "not (a like 'x%')",
        "not (a regexp 'x')",
        "(a and b) is null",
        "(a or b) in (true)",
        "(not a) is null",
        "(a is null) = b",
        "(a = b) is null",
        "(a between 1 and 2) < b",
        "a = (b is null)",
        "a is null and b in (1) or c between 1 + 2 and -d",
    ],
)
def test_what_prints_parses_to_the_same_tree(text: str) -> None:
    """Views store their expressions as printed texts."""
    (expression,) = expressions([f"select {text} from root.a"])
    statement = parse(f"select {expression} from root.a").statement
    assert isinstance(statement, Select)
    assert expression == statement.items[0].expression

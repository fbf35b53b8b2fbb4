from __future__ import annotations

import pytest

from saros_grammar.antlr.expected_tokens import expected_after


@pytest.mark.parametrize(
    ("beginning", "some", "others"),
    [
        ("", {"SELECT", "SHOW", "INSERT"}, {"FROM", "WHERE"}),
        ("show ", {"DATABASES", "TIMESERIES", "CHILD"}, {"SELECT", "ROOT"}),
        ("show child ", {"PATHS", "NODES"}, {"DEVICES"}),
        ("select avg(x)", {"FROM", "AS", "GROUP"}, {"SELECT", "SHOW"}),
        ("select x from root.a where x > 1 ", {"AND", "OR", "GROUP", "ORDER"}, {"FROM"}),
        ("select x from root.a order ", {"BY"}, {"LIMIT"}),
        ("select x from root.a where x > 'an open text", set(), {"AND"}),
        ("selct ", set(), {"FROM"}),
    ],
)
def test_keywords_are_those_that_the_grammar_allows(beginning: str, some: set[str], others: set[str]) -> None:
    keywords = set(expected_after(beginning).keywords)
    assert some <= keywords
    assert set() == keywords & others


@pytest.mark.parametrize(
    ("beginning", "rule"),
    [
        ("select ", "expressionNode"),
        ("select x from root.a where ", "expressionNode"),
        ("create timeseries root.a.x with datatype=", "typeName"),
        ("insert into root.a(", "insertColumn"),
        ("select x from root.a group by ", "grouping"),
        ("grant role r to ", "principal"),
    ],
)
def test_a_name_is_told_by_the_rule_that_it_is_in(beginning: str, rule: str) -> None:
    assert rule in expected_after(beginning).names


def test_a_name_is_not_taken_for_a_keyword() -> None:
    assert ("CASE", "LAST", "NOT", "ROOT", "TIME", "TIMESTAMP") == expected_after("select ").keywords


def test_a_deep_beginning_is_followed_like_a_flat_one() -> None:
    """The parser's stacks are compared by identity; a comparison of deep stacks by value would recurse too deeply."""
    flat, deep = expected_after("select (x"), expected_after("select " + "(" * 5_000 + "x")
    assert flat.keywords == deep.keywords

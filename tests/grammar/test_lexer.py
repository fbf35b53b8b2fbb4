"""The fast lexer returns the same tokens as ANTLR's lexer for any text."""

from __future__ import annotations

import pytest
from grammar.corpus import fixture_statements
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_grammar.antlr.lexer import exact_tokens_of, tokens_of

#: Pieces that tokens of several kinds begin with, or that continue a token of one kind as a token of another kind.
PIECES = (
    *"abxXeT_ .,;:*()[]+-/%=<>!&|?'\"`0123456789\n\t@#{}$é",
    *(
        "1d",
        "12ms",
        "1mo2d",
        "1.5",
        "1e5",
        "1.",
        "2020-01-01",
        "2020-1-1",
        "24-01-01",
        "10/1/1",
        "1.2.3",
        "T10:00:00",
        " 10:00",
        "Z",
        "+08:00",
        ".123",
    ),
    *("x'0a'", "''", '""', "``", "--", "/*", "*/", "::", "**", "select", "FROM", "root", "time_zone", "${1}", "\ufeff"),
)


def told(stream):
    return [(t.type, t.channel, t.start, t.stop, t.text, t.tokenIndex) for t in stream.tokens]


def test_tokens_of_statements() -> None:
    for text in fixture_statements():
        assert told(exact_tokens_of(text)) == told(tokens_of(text)), text


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_tokens_of_any_text(text) -> None:
    assert told(exact_tokens_of(text)) == told(tokens_of(text))


@pytest.mark.parametrize(
    "text",
    [
        "select s1, `a b` from root.sg.* where time >= 2020-01-01T10:00:00+08:00 and s1 < 3.5 group by ([1, 9), 1d12h)",
        "insert into root.a(time, s) values (1, 'it''s'), (2, X'0aff'), (?, -1.5)",
    ],
)
def test_usual_statements_need_no_second_lexer(text, monkeypatch) -> None:
    def never(_):
        raise AssertionError

    monkeypatch.setattr("saros_grammar.antlr.lexer.exact_tokens_of", never)
    assert "".join(token.text for token in tokens_of(text).tokens[:-1]) == text

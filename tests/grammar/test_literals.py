from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Duration
from saros_grammar.syntax.errors import ParseError
from saros_grammar.syntax.literals import LiteralError, duration_of, quote_name, string_literal, unquote_name
from saros_storage.base.paths import quote_node

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "months", "nanoseconds"),
    [
        ("1ns", 0, 1),
        ("1us", 0, 1_000),
        ("1ms", 0, 1_000_000),
        ("1s", 0, SECOND),
        ("2m", 0, 120 * SECOND),
        ("1h", 0, 3_600 * SECOND),
        ("1d12h", 0, 129_600 * SECOND),
        ("1w", 0, 604_800 * SECOND),
        ("1mo", 1, 0),
        ("1Y2Mo3D", 14, 259_200 * SECOND),
        ("1m1mo1ms", 1, 60 * SECOND + 1_000_000),
    ],
)
def test_durations_add_up(text, months, nanoseconds):
    assert Duration(months, nanoseconds) == duration_of(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("3cd", Duration(0, 0, 3)), ("1Y2CW1cd1d", Duration(12, 86_400 * SECOND, 15))]
)
def test_calendar_days_stay_apart_from_fixed_ones(text, expected):
    assert (expected, False) == (duration_of(text), expected.is_fixed)


def test_a_duration_beyond_64_bits_is_refused():
    with pytest.raises(LiteralError, match="too long"):
        duration_of("300000000w")
    with pytest.raises(LiteralError, match="too long"):
        duration_of("400000000cw")


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8"), max_size=12))
def test_any_string_comes_back_from_its_literal(content):
    for quote in "'\"":
        text = quote + content.replace(quote, quote * 2) + quote
        assert (content, text) == (string_literal(text).value, string_literal(text).text)


@settings(max_examples=50)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12))
def test_names_are_quoted_as_storage_quotes_nodes(content):
    assert quote_node(content) == quote_name(content)
    assert content == unquote_name(quote_name(content))


@settings(max_examples=50)
@given(st.text(st.sampled_from("aZ09_.`'\"*- 风é\n\uff11²"), min_size=1, max_size=6))
def test_a_quoted_node_is_read_as_its_canonical_text(content):
    quoted = "`" + content.replace("`", "``") + "`"
    statement = parse(f"select {quoted} from root.{quoted}.d where time > 1").statement
    assert ((quote_name(content),), ("root", quote_name(content), "d")) == (
        statement.items[0].expression.nodes,
        statement.from_paths[0].nodes,
    )


@settings(max_examples=50)
@given(st.text(st.sampled_from("aZ09_eE风é\uff11²"), min_size=1, max_size=6))
def test_canonical_text_can_be_pasted_back(content):
    text = f"create database root.{quote_name(content)}"
    try:
        assert parse(text).statement.path.nodes == ("root", quote_name(content))
    except ParseError:
        assert content.lower() in ("root", "time", "timestamp")

"""The conformance sample: statements that must parse, statements that must fail, and names of result columns."""

from __future__ import annotations

import json

import pytest
from grammar.corpus import SAMPLE, sample_statements

from saros_grammar.cache import StatementCache
from saros_grammar.parser import parse, parse_source
from saros_grammar.syntax.ast import NotSupported, Select
from saros_grammar.syntax.errors import ParseError

pytestmark = pytest.mark.skipif(not SAMPLE.exists(), reason="the conformance sample is absent")

#: Statements of the sample that must fail at some stage: they parse, but later stages refuse them as not supported.
REFUSED_LATER = {
    "CREATE PIPESINK test.1 AS IoTDB (`ip` = '127.0.0.1')",
    "CREATE PIPESINK 12345 AS IoTDB (`ip` = '127.0.0.1')",
}


def parses(text):
    try:
        parse(text)
    except ParseError:
        return False
    return True


def test_setups_and_queries_parse():
    assert [text for kind, text in sample_statements() if kind != "error" and not parses(text)] == []


def test_every_query_is_carried_out():
    statements = [parse(text).statement for kind, text in sample_statements() if kind == "query"]
    assert [] == [s.what for s in statements if isinstance(s, NotSupported)]


def test_statements_that_any_error_may_refuse_are_refused_here_or_not_supported():
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    wrong = [row["statement"] for row in rows if row["type"] == "error" and row["match"] == "any error"]
    assert {text for text in wrong if parses(text)} == REFUSED_LATER
    assert all(isinstance(parse(text).statement, NotSupported) for text in REFUSED_LATER)


def test_syntax_errors_of_the_sample_are_refused():
    rows = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    wrong = [r["statement"] for r in rows if r["type"] == "error" and "no viable" in str(r["expected_messages"])]
    assert [text for text in wrong if parses(text)] == []


def plain_names():
    """Yield (query, expected names, items) for the queries whose select items determine the column names."""
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        header = row.get("expected_header")
        if row["type"] != "query" or not header or row.get("projection") == "by_name":
            continue
        statement = parse(row["query"]).statement
        if isinstance(statement, Select) and statement.align_by_device and "*" not in row["query"].split(" from ")[0]:
            names = [name for name in header if name not in ("Time", "Device")]
            items = [item.alias or str(item.expression) for item in statement.items]
            if len(names) == len(items):
                yield row["query"], names, items


def test_columns_are_named_as_iotdb_names_them():
    found = list(plain_names())
    assert [query for query, names, items in found if names != items] == []
    assert len(found) > 30


@pytest.mark.slow
def test_cache_gives_what_the_parser_gives():
    cache = StatementCache(capacity=10_000)
    texts = [text for _, text in sample_statements() if parses(text)]
    for text in texts:
        cache.get(text)
    assert [t for t in texts if repr(cache.get(t)) != repr(parse(t))] == []


def test_fast_inserts_are_what_antlr_reads():
    texts = [text for _, text in sample_statements() if text.lower().startswith("insert") and parses(text)]
    # Test only every 20th statement: thousands of them are identical except for their numbers.
    assert [t for t in texts[::20] if repr(parse(t)) != repr(parse_source(t).parsed)] == []

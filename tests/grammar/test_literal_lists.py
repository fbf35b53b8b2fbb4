"""A parse that leaves out long lists of literals gives the same statement or error as a parse of the whole text."""

from __future__ import annotations

import pytest

from saros_grammar import antlr_parser
from saros_grammar.antlr import literal_lists
from saros_grammar.parser import ParseError, Source, parse_source
from saros_grammar.syntax.ast import Select

MANY = ", ".join(str(number) for number in range(40))
MIXED = ",".join(f"-{n}, +{n}.5, '{n}, in (1)', \"it\"\"s\", 2020-01-01, X'0a'" for n in range(10, 20))
TEXTS = [
    f"select s from root.a where s in ({MANY})",
    f"select s from root.a where s not in ( {MIXED} /* in ( */ ) and time > 5 limit 3",
    f"select s in ({MANY}), t from root.a where (s + 1) in ({MIXED}) or t in (1, 2) align by device",
    f"select count(s) from root.a.* where a = ? and s in ({MANY}) and b = ? group by ([0, 9), 3ms)",
    f"select count(s) from root.a.* group by ([0, 9), 3ms) having count(s) > ? or sum(s) in ({MANY})",
    f"select case when s in ({MANY}) then 1 else 2 end from root.a",
    f"select in({MANY}) from root.a",
    f"select s from root.a where s contains ({MANY})",
    f"select s from root.a where s in ({MANY}, ?)",
    f"select s from root.a where s in ({MANY}, null, true)",
    f"delete from root.a.s where time in ({MANY})",
    f"create view root.v.s as select s in ({MANY}) from root.a",
    f"select s from root.a where s in ({MANY},)",
    f"select s from root.a where s in ({MANY}",
    f"select s from root.a where s in ({MANY})) x",
    f"select s from root.a where s in ({MANY}, {'9' * 400}.5e999999, x'0')",
    f"selec s from root.a where s in ({MANY})",
]


def outcome(text: str) -> Source | tuple[str, int]:
    try:
        found = parse_source(text)
    except ParseError as error:
        return str(error), error.code
    return Source(found.parsed, found.scan, found.slots, found.ordinals, found.written)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_the_same_with_and_without_its_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = outcome(text)
    monkeypatch.setattr(literal_lists, "ITEMS_MIN", len(text))
    assert outcome(text) == quick


def test_the_parser_does_not_see_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    quick = antlr_parser._quick_tree
    monkeypatch.setattr(
        antlr_parser, "_quick_tree", lambda tokens: (counts.append(len(tokens.tokens)), quick(tokens))[1]
    )
    for items in (MANY, f"{MANY}, {MANY}, {MANY}"):
        statement = parse_source(f"select s from root.a where s in ({items})").parsed.statement
        assert isinstance(statement, Select)
        assert f"s IN ({items.replace(', ', ',')})" == str(statement.where)
    assert counts[0] == counts[1]

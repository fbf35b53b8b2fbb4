"""Turns text into a statement. `insert_fast` parses INSERT ... VALUES with plain values, and ANTLR everything else.

Loading ANTLR and its tables takes longer than a small program runs. They are therefore loaded only when a text needs
them.

Thread-safe.
"""

from __future__ import annotations

from saros_grammar.insert_fast import parse_insert
from saros_grammar.limits import NESTING_MAX, STATEMENT_CHARACTERS_MAX
from saros_grammar.source import Source
from saros_grammar.syntax.ast import Parsed
from saros_grammar.syntax.errors import ParseError

__all__ = ["NESTING_MAX", "STATEMENT_CHARACTERS_MAX", "ParseError", "Source", "parse", "parse_source", "warm"]

#: Typical statements for `warm`. They fill the prediction tables that all parsers share.
_WARM_UP = (
    "select s1, s2 + 1, -s3 from root.sg.d1 where time >= 10 and s1 < 3.5 and s2 = 'x' limit 10 offset 1",
    "select count(s1), avg(`a b`), max_value(*) as m from root.sg.**, root.a.* where time > now() - 1h having m > 1",
    "select sum(s1) from root.sg.** group by ([2020-01-01T00:00:00, 1000), 10m, 5m), level = 1 having count(s1) > 1",
    "select s1 from root.sg.d1 fill(previous) order by time desc, device align by device",
    "select last * from root.sg.d1 order by timeseries desc; ",
    "select case when s1 > 1 or not s2 is null then 'a' else s3 end, cast(s1 as text) from root.sg.* slimit 1",
    "select s1 * 2 from root.sg.*a* where s1 between ? and ? or s2 not in (1, 2) or s3 like '%a%' align by device",
    "select (s1 + 1) % 2 / 3, (s1 - 1) * (s2 + 2), f(g(s1 + 1) * 2) - 3 % 4, h(s1, 2, 'k'='v'), *.s1 from root.sg.*",
    "select s1 from root.a where ((s1 > 1 or (s2 = 'x')) and not (s3 in (1, 2))) or !s4 and (s5 between 1 and 2)",
    "select s1 from root.a where time = 2020-01-01 and s1 is not null and s2 regexp 'x' or s3 >= -1.5",
    "insert into root.sg.d1(time, s1, s2) values (now(), -1.5, null), (2, ?, true)",
    "delete from root.sg.d1.s1, root.sg.d1.* where time >= 1 and time < 10",
    "create timeseries root.sg.d1.s1(alias) with datatype=INT32, encoding=RLE, compressor=LZ4 tags(a=b, 'c'='d')",
    "create timeseries root.sg.d1.s1 INT32 encoding=PLAIN compression=SNAPPY",
    "create aligned timeseries root.sg.d1(s1 INT32 encoding=RLE, s2 TEXT)",
    "create database root.sg",
    "delete timeseries root.sg.**",
    "show timeseries root.sg.** where tags(a) = 'b' limit 10 offset 1",
    "show devices root.sg.** with database",
    "count timeseries root.** group by level = 1",
    "show databases",
    "flush",
    "explain analyze select s1 from root.sg.d1",
)


def parse(text: str) -> Parsed:
    """Return the statement of `text`. Raises ParseError (700, or 2006 if the text is too long)."""
    return parse_insert(text) or parse_source(text).parsed


def parse_source(text: str) -> Source:
    """Parse `text`, always with ANTLR, and return the statement with the places of its literals and paths."""
    from saros_grammar import antlr_parser

    return antlr_parser.parse_source(text)


def warm() -> None:
    """Parse typical statements (in a background thread) to fill the tables before a user's first statement."""
    for text in _WARM_UP:
        parse_source(text)

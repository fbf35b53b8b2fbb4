from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from grammar.corpus import fixture_statements
from grammar.sentences import sentence
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_grammar import cache as cache_module
from saros_grammar.cache import RecentMap, StatementCache
from saros_grammar.parser import parse
from saros_grammar.shape import scan
from saros_grammar.syntax.errors import ParseError


def answer(get, text):
    try:
        return repr(get(text))
    except ParseError as error:
        return f"{error}\n{error.caret()}"


@pytest.fixture
def counted(monkeypatch):
    """Return a list with an element for each call of ANTLR's parser."""
    calls = []
    original = cache_module.parse_source
    monkeypatch.setattr(cache_module, "parse_source", lambda text: calls.append(text) or original(text))
    return calls


def test_statements_that_differ_in_literals_are_parsed_once(counted):
    cache = StatementCache()
    template = "select s1 + {} from root.a where s2 > -{} and s3 = {} limit {}"
    for values in [(1, 2.5, "'x'", 10), (22, 0.25, "'it''s'", 1), (0, 1e9, "''", 7)]:
        text = template.format(*values)
        assert repr(parse(text)) == repr(cache.get(text))
    assert len(counted) == 1


def test_statements_that_differ_in_plain_paths_are_parsed_once(counted):
    cache = StatementCache()
    template = "select {0}.s1, s2 + 1 from {1}, ROOT.x.* where time > {2} and {0}.s1 = 'root.x' order by time"
    for values in [
        ("root.a", "root.b.c", 1),
        ("root.sg.d1", "Root.select", 20),
        ("root.from.a.b.c", "root._", 3),
        ("root.time", "root.Root.timestamp", 4),
    ]:
        text = template.format(*values)
        assert repr(parse(text)) == repr(cache.get(text))
        assert text.split(" from ")[1].split(",")[0] in cache.get(text).shape  # the shape includes paths
    assert len(counted) == 1


@pytest.mark.parametrize(
    "text",
    [
        "delete from root.a.{}.s1 where time < 10",
        "insert into root.{}(time, s1) values (?, 1)",
        "create database root.{} with ttl=10",
        "show timeseries root.a.{}.** limit 10",
        "count devices root.{}",
        "grant read_data on root.a.{} to user ann",
        "set ttl to root.{} 1000",
        "explain select last s1 from root.{}",
    ],
)
def test_paths_of_other_statements_are_exchanged_too(text, counted):
    cache = StatementCache()
    for node in ("d1", "group", "a_2", "time", "ROOT"):
        assert repr(parse(text.format(node))) == repr(cache.get(text.format(node)))
    assert len(counted) == (5 if "**" in text else 1)


def test_the_same_text_gives_the_same_object():
    cache = StatementCache()
    assert cache.get("show databases") is cache.get("show databases")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("select s1 from root.a where s1 > 1", "select s1 from root.a where s1 > 1.0"),
        ("select s1 from root.a where s1 = 1", "select s1 from root.a where s1 = '1'"),
        ("select count(s1) from root.a group by level=1", "select count(s1) from root.a group by level=2"),
        ("select f(s1, 'k'='1') from root.a", "select f(s1, 'k'='2') from root.a"),
        ("select f(s1, 'k'='1') from root.a", "select f(s1, 'j'='1') from root.a"),
        ("select s1 from root.a where time > now() - 1h", "select s1 from root.a where time > now() - 2h"),
        ("select s1 from root.a group by ([0, 10), 1ms)", "select s1 from root.a group by ([0, 10), 2ms)"),
        ("select s1 from root.a group by variation(s1, 1)", "select s1 from root.a group by variation(s1, 2)"),
        ("select s1 as `a` from root.a", "select s1 as `b` from root.a"),
        ("select s1 from root.a where time > 2020-01-01", "select s1 from root.a where time > 2020-01-02"),
        ("select s1 from root.a where time > 24-1-1", "select s1 from root.a where time > 24-1-2"),
        ("select s1 from root.a where s1 = X'00'", "select s1 from root.a where s1 = X'01'"),
        ("select s1 from root.a where s1 > .5", "select s1 from root.a where s1 > .6"),
        ("select s1 from root.a where s1 > 1 -- '1'", "select s1 from root.a where s1 > 1 -- '2'"),
        ("select `1` from root.a", "select `2` from root.a"),
        ("select 1d from root.a", "select 2d from root.a"),
        ("kill query '1'", "kill query '2'"),
        ("show timeseries where tags(a) = 1", "show timeseries where tags(a) = 2"),
        ("create timeseries root.a.b INT32 tags(a='1')", "create timeseries root.a.b INT32 tags(a='2')"),
        ("set time zone '+01:00'", "set time zone '+02:00'"),
        ("select case s1 when 1 then 2 end from root.a", "select case s1 when 3 then 4 end from root.a"),
        (
            "select case 1 when s1 then 2 when s2 then 3 end from root.a",
            "select case 5 when s1 then 6 when s2 then 7 end from root.a",
        ),
        ("insert into root.a(time, s1) values (1, ?)", "insert into root.a(time, s1) values (2, ?)"),
        ("insert into root.a(time, s1) values (now(), 1)", "insert into root.a(time, s1) values (now(), 2)"),
        ("explain select s1 from root.a where s1 > 1", "explain select s1 from root.a where s1 > 2"),
        ("select substring(s1 from 1 for 2) from root.a", "select substring(s1 from 3 for 4) from root.a"),
        ("select s1 from root.a.b", "select s1 from root.a.time"),
        ("select s1 from root.a.b", "select s1 from root.a.root"),
        ("select s1 from root.a.b", "select s1 from root.a.time_zone"),
        ("select s1 from root.a.b", "select s1 from root.a.1"),
        ("select s1 from root.a.b", "select s1 from root.a.1d"),
        ("select s1 from root.a.b", "select s1 from root.a.b1.`c`"),
        ("select s1 from root.a.b", "select s1 from root.a.b.ü"),
        ("select s1 from root.a.b", "select s1 from root.a.bü"),
        ("select s1 from root.a.b", "select s1 from root.a.\u017f"),
        ("select s1 from root.a.b", "select s1 from root . a.b"),
        ("select s1 from root.a.b", "select s1 from root.a/**/.b"),
        ("select s1 from root.a.b", "select s1 from root"),
        ("select s1 from root.a.b", "select s1 from root.a.b*"),
        ("select root.a.b *2 from root.a", "select root.a.c *2 from root.a"),
        ("select root.a.b as root from root.a", "select root.a.c as root from root.a"),
        ("select s1 from root.a.b where s1 = X'00'", "select s1 from root.a.x'00'"),
        ("start root.a.b'00'", "start root.a.x'00'"),
        ("start root.a.b${1}", "start root.a.c${1}"),
        ("start x.root.a", "start x.root.b"),
        ("select s1 into root.b.c(t) from root.a", "select s1 into root.b.d(t) from root.a"),
        ("create timeseries root.a.b INT32", "create timeseries root.a.c.d INT32"),
        ("create timeseries root.a INT32", "create timeseries root INT32"),
        ("create timeseries root.a.b INT32", "create timeseries root.a.time INT32"),
        ("create view root.v.a.b as root.s.d(s)", "create view root.v.a.c as root.s.e(s)"),
        ("create view root.v.a.b as root.s.d", "create view root.v.b as root.s.e"),
        ("create view root.v.a as root.s.d", "create view root.v.a.b as root.s.d"),
        (
            "create cq c begin select s1 into root.a(t) from root.b end",
            "create cq c begin select s1 into root.a(t) from root.c end",
        ),
        ("show timeseries where timeseries = root.a.b", "show timeseries where timeseries = root.a.c"),
        (
            "show devices where case root.a when 1 then 2 when 3 then 4 end = 1",
            "show devices where case root.b when 1 then 2 when 3 then 4 end = 1",
        ),
        ("select s1 from root.a where s1 = 'root.a'", "select s1 from root.a where s1 = 'root.b'"),
        ("select s1 from root.a -- root.a", "select s1 from root.a -- root.b"),
        ("select s1 from root.a where `root.a` = 1", "select s1 from root.a where `root.b` = 1"),
        (
            "select s1 from root.a group by variation(s1, root.a=true)",
            "select s1 from root.a group by variation(s1, root.b=true)",
        ),
        ("select root.a.b, root.a.b from root.c", "select root.a.b, root.a.d from root.c"),
        ("set storage group to root.a", "set storage group to root.b.c"),
        ("alter view root.a.b rename to root.a.c", "alter view root.a.c rename to root.a.b"),
        ("create user root 'a.b'", "create user root 'a.c'"),
    ],
)
def test_a_hit_never_mixes_statements_up(first, second):
    cache = StatementCache()
    for text in (first, second, first, second):
        assert answer(parse, text) == answer(cache.get, text)


def test_a_literal_that_the_parser_refuses_is_refused_on_a_hit_too():
    cache = StatementCache()
    cache.get("select s1 from root.a where s1 > 1")
    text = f"select s1 from root.a where s1 > {'9' * 500}"
    assert answer(parse, text) == answer(cache.get, text)


def test_mistakes_are_not_remembered():
    cache = StatementCache()
    for _ in range(2):
        with pytest.raises(ParseError):
            cache.get("select s1 frm root.a")
    assert len(cache._texts) == 0


def test_a_text_with_the_mark_of_shapes_is_parsed():
    text = "select s1 from root.a where s1 = '\0i\0'"
    assert answer(parse, text) == answer(StatementCache().get, text)


def test_memory_is_bounded():
    cache = StatementCache(capacity=8)
    for i in range(200):
        cache.get(f"select s{i} from root.a where level = {i} group by level={i}")
    assert len(cache._texts) <= 16
    assert len(cache._fixed) <= 16
    assert len(cache._templates) <= 16


def test_templates_of_one_shape_are_bounded():
    cache = StatementCache(capacity=8)
    for i in range(200):
        cache.get(f"select count(s1) from root.a group by level={i}")
    assert len(cache._fixed) == 1
    assert len(cache._templates) <= 16


def test_entries_in_use_outlive_others():
    entries = RecentMap(capacity=4)
    entries.put("used", 1)
    for i in range(100):
        entries.put(f"other {i}", i)
        assert entries.get("used") == 1
    assert entries.get("other 0") is None


def test_threads_get_what_one_gets():
    cache = StatementCache(capacity=4)
    texts = [f"select s{i % 7} from root.a where s1 > {i}" for i in range(60)]
    expected = [repr(parse(text)) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert [repr(found) for found in pool.map(cache.get, texts)] == expected


KINDS = {
    "i": ["0", "7", "42", "007", "9" * 25, "2020", "1000000"],
    "d": ["1.5", "0.0", "1e3", "12.25E-3", "2020.5"],
    "p": ["root.a", "root.sg.d1.s1", "ROOT.select.from", "root._.time_zone.tags", "root.x.ends"],
    "s": ["'a'", "''", '"b"', "'it''s'", '"say ""x"""', "'1'", "'--'", "'`'", "'/*'", "'%a'"],
}
ODD_PATHS = ["root", "root.time", "root.a.1", "root.1d", "root.a.`b`", "root.*", "root.a.ü", "root . a", "root.a.x'00'"]
CORPUS = [text for text in fixture_statements() if "\0" not in text]


def varied(text, choose):
    """Return the text with its literals and paths replaced by other literals and paths, mostly of the same kinds."""
    found = scan(text)
    parts = found.stripped.split("\0")
    for place in range(1, len(parts), 2):
        kind = parts[place] if choose.random() < 0.9 else choose.choice("idps")
        parts[place] = choose.choice(ODD_PATHS if kind == "p" and choose.random() < 0.1 else KINDS[kind])
    return "".join(parts)


SHARED = StatementCache(capacity=4_000)


@settings(max_examples=50)
@given(st.sampled_from(CORPUS), st.integers(0, 2**32))
def test_cached_statements_equal_fresh_ones(text, seed):
    choose = random.Random(seed)
    for _ in range(4):
        other = varied(text, choose)
        assert answer(parse, other) == answer(SHARED.get, other)
        # Now the cache has this text itself. For other texts of its shape, the cache has only the shape.
        assert answer(parse, other) == answer(SHARED.get, other)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_sentences_of_the_grammar_with_other_paths_equal_fresh_ones(seed):
    choose = random.Random(seed)
    text = re.sub(r"\broot\b(?: \. \w+)+", lambda _: "root.a.b", " ".join(sentence(choose)))
    if "\0" in text:
        return
    for other in (text, varied(text, choose), varied(text, choose), varied(text, choose)):
        assert answer(parse, other) == answer(SHARED.get, other)


FRAGMENTS = st.sampled_from(
    [
        "select",
        "s1",
        "-",
        "1",
        "2020",
        "-01-01",
        ".5",
        "1.5",
        "'a'",
        "'",
        '"b"',
        "`",
        "`c`",
        "from",
        "root.a",
        "root",
        ".b",
        "${1}",
        "where",
        ">",
        "1h",
        "e5",
        "X'00'",
        "--",
        "/*",
        "*/",
        "+",
        "(",
        ")",
        ",",
        "as",
        "T00:00:00",
        "?",
        "::",
        "=",
        "limit",
    ]
    + [" "] * 20
    + ["\n"]
)


@settings(max_examples=50)
@given(st.lists(FRAGMENTS, max_size=12), st.integers(0, 2**32))
def test_odd_texts_answer_as_the_parser_does(fragments, seed):
    text = "select " + "".join(fragments) + " from root.a"
    cache = StatementCache()
    choose = random.Random(seed)
    for other in (text, varied(text, choose), varied(text, choose)):
        assert answer(parse, other) == answer(cache.get, other)

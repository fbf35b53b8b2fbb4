from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from grammar.corpus import fixture_statements
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_grammar import cache as cache_module
from saros_grammar.cache import RecentMap, StatementCache
from saros_grammar.errors import ParseError
from saros_grammar.parser import parse
from saros_grammar.shape import scan


def answer(get, text):
    try:
        return repr(get(text))
    except ParseError as error:
        return f"{error}\n{error.caret()}"


@pytest.fixture
def counted(monkeypatch):
    """How often ANTLR was asked."""
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
    assert len(cache._shapes) <= 16


def test_templates_of_one_shape_are_bounded():
    cache = StatementCache(capacity=8)
    for i in range(200):
        cache.get(f"select count(s1) from root.a group by level={i}")
    shapes = [*cache._shapes._young.values(), *cache._shapes._old.values()]
    assert [len(shape.templates) <= 64 for shape in shapes] == [True]


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
    "s": ["'a'", "''", '"b"', "'it''s'", '"say ""x"""', "'1'", "'--'", "'`'", "'/*'", "'%a'"],
}
CORPUS = [text for text in fixture_statements() if "\0" not in text]


def varied(text, choose):
    """The text with other literals, mostly of the same kinds."""
    found = scan(text)
    parts = found.stripped.split("\0")
    for place in range(1, len(parts), 2):
        kind = parts[place] if choose.random() < 0.9 else choose.choice("ids")
        parts[place] = choose.choice(KINDS[kind])
    return "".join(parts)


SHARED = StatementCache(capacity=4_000)


@settings(max_examples=50)
@given(st.sampled_from(CORPUS), st.integers(0, 2**32))
def test_cached_statements_equal_fresh_ones(text, seed):
    choose = random.Random(seed)
    for _ in range(4):
        other = varied(text, choose)
        assert answer(parse, other) == answer(SHARED.get, other)
        # Once more: now by its text, then by its shape only.
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

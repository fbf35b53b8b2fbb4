from __future__ import annotations

import pytest
from grammar.corpus import fixture_statements
from hypothesis import given, settings
from hypothesis import strategies as st

from saros_grammar.insert_fast import parse_insert
from saros_grammar.parser import parse_source
from saros_grammar.syntax.errors import ParseError

FAST = [
    "insert into root.sg.d1(time, s1) values (1, 2)",
    "INSERT INTO ROOT.sg.d1 ( S1 , Timestamp ) aligned VALUES ( 'a' , 2 ) , (\"b\",3) ; ",
    "insert\ninto root.select.from(values,time,aligned) values\t(1,2,null)",
    "insert into root.root.time.Timestamp(time, s1) values (1, 2)",
    "insert into root.sg.风机(time, 风速) values (-1, +2.5e-3)",
    "insert into root.sg(s1) values (true), (FALSE), (Null), (nan), ('it''s'), (\"\"), (007)",
    "insert into root.sg(time,s1)values(1,'a;b)--')",
    "insert into root.sg.d1(time, s1) values (now(), 2)",
    "insert into root.sg.d1(time, s1, s2) values (now(), now(), 1)",
    "insert into root.sg.d1(s1) values (now())",
    "insert into root.sg.d1(s1, time) values ('now()', NOW ( )), (null, 5), (1.5, Now())",
]
SLOW = [
    "insert into root.`a`.d1(time, s1) values (1, 2)",
    "insert into root.sg.d1(time, `s 1`) values (1, 2)",
    "insert into root.sg.d1(time, s1) values (now() - 1h, 2)",
    "insert into root.sg.d1(time, s1) values (2020-01-01, 2)",
    "insert into root.sg.d1(time, s1) values (?, 2)",
    "insert into root.sg.d1(time, s1) values (1, X'00')",
    "insert into root.sg.d1(time, s1) values (1, - 2)",
    "insert into root.sg.d1(time, s1) values (1, .5)",
    "insert into root.sg.d1(time, s1) values (1, 2) -- done",
    "insert into root.sg.1d(time, 2s) values (1, 2)",
    "insert into root.sg.d1(time, s1) values (1, infinity)",
]
WRONG = [
    "insert into root.sg.d1(time, s1) values (1)",
    "insert into root.sg.d1(time, s1) values (1, 2) (3, 4)",
    "insert into root.sg.d1(time, timestamp, s1) values (1, 2, 3)",
    "insert into root.sg.d1(time) values (1)",
    "insert into root.sg.d1(time, root) values (1, 2)",
    "insert into root.sg.d1(time, s1) values (1, 'a)",
    "insert into root.sg.d1(time, s1) values (1, 2),",
    "insert into root.sg.d1(time, s1) values (1, abc)",
    "insert into root.sg.d1(time, s1) values (-now(), 1)",
    "insert into root.sg.d1(time, s1) values (1, 2) select",
    f"insert into root.sg.d1(time, s1) values (1, {'9' * 500})",
]


@pytest.mark.parametrize("text", FAST)
def test_plain_inserts_are_taken_and_equal_antlrs(text):
    assert repr(parse_source(text).parsed) == repr(parse_insert(text))


@pytest.mark.parametrize("text", SLOW)
def test_unusual_inserts_are_left_to_antlr(text):
    assert parse_insert(text) is None
    parse_source(text)


@pytest.mark.parametrize("text", WRONG)
def test_mistakes_are_left_to_antlr(text):
    assert parse_insert(text) is None
    with pytest.raises(ParseError):
        parse_source(text)


def test_other_statements_are_left_to_antlr():
    texts = [text for text in fixture_statements() if not text.lower().lstrip().startswith("insert")]
    assert [text for text in texts if parse_insert(text) is not None] == []


VALUES = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8).map(
        lambda s: "'" + s.replace("'", "''") + "'"
    ),
    st.text(st.sampled_from("ab\"'(),;-`?\\ \n"), max_size=8).map(lambda s: '"' + s.replace('"', '""') + '"'),
    st.sampled_from(["true", "False", "NULL", "NaN", "+1", "-0", "1e5", "1.5E-7"]),
)
GAPS = st.sampled_from(["", " ", "\n", "  "])


@pytest.mark.slow
@settings(max_examples=50)
@given(st.data())
def test_random_inserts_equal_antlrs(data):
    width = data.draw(st.integers(1, 4))
    columns = [f"s{i}" for i in range(width)]
    if data.draw(st.booleans()):
        columns.insert(data.draw(st.integers(0, width)), data.draw(st.sampled_from(["time", "TIMESTAMP"])))
    gap = data.draw(GAPS)
    rows = data.draw(st.lists(st.lists(VALUES, min_size=len(columns), max_size=len(columns)), min_size=1, max_size=4))
    tail = f"{gap},{gap}".join("(" + f"{gap},".join(row) + f"{gap})" for row in rows)
    text = f"insert into root.sg.d1{gap}({', '.join(columns)}){gap} values{gap}{tail}{gap};"
    assert repr(parse_source(text).parsed) == repr(parse_insert(text))


@settings(max_examples=50)
@given(st.text(st.sampled_from("(),'\"1a-.;?` \n"), max_size=20))
def test_what_the_fast_path_takes_antlr_takes_too(tail):
    text = f"insert into root.sg.d1(time, s1) values {tail}"
    parsed = parse_insert(text)
    if parsed is not None:
        assert repr(parse_source(text).parsed) == repr(parsed)

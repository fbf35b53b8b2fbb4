from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from grammar.corpus import fixture_statements

from saros_grammar import antlr_parser
from saros_grammar.builders.expressions import EXPRESSION_HEIGHT_MAX
from saros_grammar.parser import NESTING_MAX, STATEMENT_CHARACTERS_MAX, parse, parse_source, warm
from saros_grammar.syntax.ast import Binary, NotSupported, Select
from saros_grammar.syntax.errors import ParseError


def error_of(text):
    with pytest.raises(ParseError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "-- only a comment"])
def test_an_empty_text_ends_too_early(text):
    assert "ends too early" in error_of(text).message


def test_a_parse_error_carries_code_place_and_expectation():
    error = error_of("select s1\nfrom root.a\nlimit x")
    assert (700, 3, 6, ("?", "a number")) == (error.code, error.line, error.column, error.expected)
    assert error.caret() == "limit x\n      ^"
    assert str(error) == "line 3, column 7: unexpected 'x'; expected ? or a number"


def test_an_interval_of_postgresql_is_answered_with_a_duration():
    statement = parse("select s1 from root.a where time > now() - interval '1 hour'").statement
    assert isinstance(statement, NotSupported)
    assert statement.what.startswith("INTERVAL: write a duration without quotes")
    assert "expected" in error_of("select s1 from root.a where interval 1").message


def test_the_caret_of_a_long_line_shows_the_part_around_the_mistake():
    error = error_of("select " + ", ".join(f"s{i}" for i in range(200)) + " frm root.a")
    line, caret = error.caret().split("\n")
    assert len(line) <= 120
    assert line[len(caret) - 1 :].startswith("frm")


def test_a_text_beyond_the_limit_is_too_large():
    error = error_of("select '" + "x" * STATEMENT_CHARACTERS_MAX + "' from root.a")
    assert error.code == 2006
    assert str(STATEMENT_CHARACTERS_MAX) in error.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("abs(", ")"), ("case when ", " then 1 end"), ("-(", ")"), ("not (", ")")]
)
def test_nesting_up_to_the_limit_parses_and_beyond_is_refused(opening, closing):
    def nested(depth):
        return f"select {opening * depth}s1{closing * depth} from root.a"

    levels = NESTING_MAX // opening.count("(") if "(" in opening else NESTING_MAX
    assert isinstance(parse(nested(levels)).statement, Select)
    assert "nested too deeply" in error_of(nested(levels + 1)).message


def test_a_mistake_in_a_deeply_nested_statement_is_a_parse_error():
    assert error_of(f"select {'(' * NESTING_MAX}s1 + {')' * NESTING_MAX} from root.a").code == 700


@pytest.mark.parametrize("word", [" + s1", " or s1 > 1", " - 1", " and s1 is null"])
def test_long_chains_parse_up_to_the_height_limit(word):
    terms = EXPRESSION_HEIGHT_MAX // (2 if " s1 " in word else 1) - 2
    statement = parse(f"select s1 from root.a where s1 = 1{word * terms}").statement
    assert isinstance(statement.where, Binary)
    assert str(statement.where).startswith("s1 = 1")
    assert hash(statement) == hash(statement)
    error = error_of(f"select s1 from root.a where s1 = 1{word * EXPRESSION_HEIGHT_MAX}")
    assert str(EXPRESSION_HEIGHT_MAX) in error.message


@pytest.mark.parametrize("word", ["or", "and", "||", "&"])
def test_chains_beyond_the_limit_are_refused_before_they_are_parsed(word, monkeypatch):
    terms = f" {word} ".join(["s1 = 1"] * (EXPRESSION_HEIGHT_MAX + 2))
    monkeypatch.setattr(antlr_parser, "_quick_tree", lambda tokens: pytest.fail("the chain was parsed"))
    error = error_of(f"select s1 from root.a where (({terms}))")
    assert "too deep" in error.message
    assert error.text[error.column :].startswith(word)


def test_only_one_chain_counts_for_the_limit():
    chain = " or ".join(["s1"] * 600)
    ranges = " and ".join(["s1 between 1 and 2"] * 300)
    parse(f"select {chain}, ({chain}) from root.a where {chain} group by ([0, 9), 1ms) having {chain}")
    parse(f"select s1 from root.a where {ranges}")
    cases = " ".join(["when s1 or s2 then s3 or s4"] * 600)
    parse(f"select case {cases} else s1 or s2 end from root.a")


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["-", "!", "not ", "+ "])
def test_many_signs_are_bounded(sign):
    parse(f"select {sign * 150}s1 from root.a" if sign != "-" else f"select {'- ' * 150}s1 from root.a")
    assert "too deep" in error_of(f"select {(sign.strip() + ' ') * 2_000}s1 from root.a").message


def test_a_statement_met_deep_in_the_callers_stack_is_refused_as_nested():
    limit = sys.getrecursionlimit()

    def dive(depth):
        return dive(depth - 1) if depth else parse_source("select ((((((s1)))))) from root.a")

    frames = 0
    frame = sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    with pytest.raises(ParseError, match="nested too deeply"):
        dive(limit - frames - 25)


def test_shape_holds_paths_and_fixed_literals_and_literals_the_others():
    parsed = parse("select top_k(s1, 'k'='2') from root.a where s2 > -1.5 and s3 = 'x' group by level=1")
    marked = "select top_k(s1, ~'k'~=~'2'~) from ~root.a~ where s2 > -~d~ and s3 = ~s~ group by level=~1~"
    assert parsed.shape.replace("\0", "~") == marked
    assert [literal.text for literal in parsed.literals] == ["-1.5", "'x'"]


def test_parameters_are_numbered_in_text_order():
    parsed = parse("select ? from root.a order by s1 limit ? offset ?")
    assert (3, 0, 1, 2) == (
        parsed.parameters,
        parsed.statement.items[0].expression.index,
        parsed.statement.limit.index,
        parsed.statement.offset.index,
    )


def test_threads_parse_the_same_as_one():
    texts = [text for text in fixture_statements() if not text.startswith("insert")][:80]

    def answer(text):
        try:
            return repr(parse(text))
        except ParseError as error:
            return str(error)

    expected = [answer(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, texts * 2)) == expected * 2


def test_warm_statements_parse():
    warm()

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from saros_grammar.bind import ParameterBinder
from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Literal, LiteralKind, Parameter
from saros_grammar.syntax.errors import BindError

K = LiteralKind


@pytest.mark.parametrize(
    ("value", "kind", "bound", "text"),
    [
        (None, K.NULL, None, "null"),
        (True, K.BOOLEAN, True, "true"),
        (np.False_, K.BOOLEAN, False, "false"),
        (5, K.INTEGER, 5, "5"),
        (-(2**63), K.INTEGER, -(2**63), str(-(2**63))),
        (np.int32(-7), K.INTEGER, -7, "-7"),
        (np.uint64(2**63 - 1), K.INTEGER, 2**63 - 1, str(2**63 - 1)),
        (1.5, K.DOUBLE, 1.5, "1.5"),
        (np.float64(2.25), K.DOUBLE, 2.25, "2.25"),
        (np.float32(0.5), K.DOUBLE, 0.5, "0.5"),
        (math.inf, K.DOUBLE, math.inf, "Infinity"),
        (-math.inf, K.DOUBLE, -math.inf, "-Infinity"),
        (Decimal("1.10"), K.DOUBLE, 1.1, "1.10"),
        ("it's", K.STRING, "it's", "'it''s'"),
        (np.str_("x"), K.STRING, "x", "'x'"),
        (b"\x0a\xff", K.BLOB, b"\x0a\xff", "X'0aff'"),
        (bytearray(b"a"), K.BLOB, b"a", "X'61'"),
        (memoryview(b"a"), K.BLOB, b"a", "X'61'"),
        (np.bytes_(b"a"), K.BLOB, b"a", "X'61'"),
        (datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), K.TIME, 1500, "1500"),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), K.TIME, -1, "-1"),
        (datetime(1970, 1, 1, 8, tzinfo=timezone(timedelta(hours=8))), K.TIME, 0, "0"),
        (datetime.fromisoformat("2020-01-02T03:04:05"), K.TIME, "2020-01-02T03:04:05", "2020-01-02T03:04:05"),
        (
            datetime.fromisoformat("2020-01-02T03:04:05.5"),
            K.TIME,
            "2020-01-02T03:04:05.500000",
            "2020-01-02T03:04:05.500000",
        ),
        (date(2020, 1, 2), K.TIME, "2020-01-02", "2020-01-02"),
        (np.datetime64("1970-01-01T00:00:02"), K.TIME, 2000, "2000"),
        (np.datetime64("NaT", "s"), K.NULL, None, "null"),
        (pd.Timestamp("1970-01-01T00:00:03", tz="UTC"), K.TIME, 3000, "3000"),
    ],
)
def test_values_become_literals(value, kind, bound, text):
    assert Literal(kind, bound, text) == ParameterBinder().literal(value)


def test_nan_is_a_double():
    literal = ParameterBinder().literal(float("nan"))
    assert literal.kind is K.DOUBLE
    assert math.isnan(literal.value)
    assert literal.text == "NaN"


def test_ticks_follow_the_time_unit_exactly():
    moment = datetime(2023, 11, 14, 22, 13, 20, 123_457, tzinfo=UTC)
    assert 1_700_000_000_123_457 == ParameterBinder(1_000_000).literal(moment).value
    assert 1_700_000_000_123_457_000 == ParameterBinder(1_000_000_000).literal(moment).value
    stamp = pd.Timestamp(1_700_000_000_123_456_789, tz="UTC")
    assert 1_700_000_000_123_456_789 == ParameterBinder(1_000_000_000).literal(stamp).value
    assert 1_700_000_000_123_456_789 == ParameterBinder(1_000_000_000).literal(stamp.to_datetime64()).value


@pytest.mark.parametrize("value", [object(), timedelta(1), [1], {}, 1j, np.array([1]), np.timedelta64(1, "s"), int])
def test_other_types_are_refused_by_name(value):
    with pytest.raises(BindError, match=r"cannot be bound|no SQL type") as caught:
        ParameterBinder().bind(parse("select s1 from root.a where s1 > ? and s2 = ?").statement, [1, value])
    assert (2003, 1) == (caught.value.code, caught.value.index)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, np.uint64(2**63), Decimal("1e999")])
def test_values_beyond_64_bits_are_refused(value):
    with pytest.raises(BindError, match="does not fit"):
        ParameterBinder().literal(value)


@pytest.mark.parametrize("values", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_values_is_refused(values):
    with pytest.raises(BindError, match="2 parameters") as caught:
        ParameterBinder().bind(parse("select s1 from root.a where s1 > ? and s2 = ?").statement, values)
    assert caught.value.code == 2003


def test_a_bound_statement_is_the_one_that_was_written_with_the_values():
    text = "select s1 + {}, {} from root.a where s2 = {} or s3 in (1, {}) order by s1 limit {}"
    values = [1, 2.5, "it's", None, 10]
    written = parse(text.format(1, 2.5, "'it''s'", "null", 10)).statement
    assert written == ParameterBinder().bind(parse(text.format(*"?????")).statement, values)


def test_an_insert_is_bound_row_by_row():
    statement = parse("insert into root.a(time, s1, s2) values (?, ?, 1), (2, null, ?)").statement
    written = parse("insert into root.a(time, s1, s2) values (7, 'x', 1), (2, null, true)").statement
    assert written == ParameterBinder().bind(statement, [7, "x", True])


def test_text_is_never_read_as_sql():
    bound = ParameterBinder().bind(parse("select s1 from root.a where s1 = ?").statement, ["x' or 1=1 --"])
    assert bound.where.right.value == "x' or 1=1 --"
    assert parse("select s1 from root.a where s1 = " + bound.where.right.text).statement == bound


def test_a_statement_without_parameters_is_itself():
    statement = parse("show databases").statement
    assert ParameterBinder().bind(statement, []) is statement


def test_a_binder_serves_many_statements_and_values():
    binder = ParameterBinder()
    statements = [parse(f"select s{i} from root.a where s1 > ?").statement for i in range(600)]
    for _ in range(2):
        for i, statement in enumerate(statements):
            bound = binder.bind(statement, [i])
            assert (i, Parameter(0)) == (bound.where.right.value, statement.where.right)
    assert len(binder._templates) <= 512

"""Functions that other programs use to process queries: the paths in a condition, and a check of the condition."""

from __future__ import annotations

import pytest

from saros_grammar.queries import check_condition, paths_in_condition
from saros_grammar.syntax.errors import ParseError


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 1 and `p q` < x + 2 or time > 5", ["x", "`p q`"]),
        ("abs(x) > 1 and y in (1, 2) and z is not null and t like 'a%'", ["x", "y", "z", "t"]),
        ("case when a > 1 then b else cast(c as INT32) end between d and 5", ["a", "b", "c", "d"]),
        ("root.a.d.x > 1 and sub.y = 'root.a.z' and * != 3", ["root.a.d.x", "sub.y", "*"]),
        ("time > now() - 1h", []),
        ("x >", []),
    ],
)
def test_paths_in_a_condition(condition: str, expected: list[str]) -> None:
    assert expected == [str(path) for path in paths_in_condition(condition)]


@pytest.mark.parametrize("condition", ["x > 1", "(x > 1) or (`)` = ')')", "x in\n(1, 2)", "true"])
def test_a_condition_is_taken(condition: str) -> None:
    check_condition(condition)


@pytest.mark.parametrize(
    ("condition", "line", "column", "said"),
    [
        ("t >", 1, 3, "ends too early"),
        ("t > 1 and\nu >>  2", 2, 3, "unexpected '>'"),
        ("t > 1) or (u > 2", 1, 5, "unexpected '\\)'"),
        ("t > 1 limit 5", 1, 6, "unexpected 'limit'"),
        ("t > 1; drop database root.a", 1, 7, "one statement at a time"),
        ("t > 1;", 1, 5, "unexpected ';'"),
        ("t > 1 -- all", 1, 12, "ends too early"),
        ("t = 'a", 1, 4, "does not end"),
    ],
)
def test_what_is_no_condition_is_named_with_its_place(condition: str, line: int, column: int, said: str) -> None:
    with pytest.raises(ParseError, match=said) as error:
        check_condition(condition)
    assert (condition, line, column) == (error.value.text, error.value.line, error.value.column)

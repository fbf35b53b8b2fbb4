"""Texts that programs read data with: the paths in a condition."""

from __future__ import annotations

import pytest

from saros_grammar.queries import paths_in_condition


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

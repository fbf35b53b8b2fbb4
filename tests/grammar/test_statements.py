"""The fixture files of testdata/: statements with their trees, and mistakes with their messages.

Run this module as a program to rewrite the expected outputs, and review the difference before you commit it.
"""

from __future__ import annotations

import pytest
from grammar.corpus import TESTDATA, cases, show

from saros_grammar.parser import parse
from saros_grammar.syntax.ast import Select
from saros_grammar.syntax.errors import ParseError

FILES = sorted(TESTDATA.glob("*.txt"))


def answer(text):
    """Return the tree (for SELECT, also the column names), or the error with its caret, as a text."""
    try:
        statement = parse(text).statement
    except ParseError as error:
        return f"{error.code} {error}\n{error.caret()}"
    names = [str(item.expression) for item in statement.items] if isinstance(statement, Select) else []
    return show(statement) + "".join(f"\n  {name}" for name in names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [case for path in FILES for case in cases(path)],
    ids=[f"{path.stem}-{i}" for path in FILES for i, _ in enumerate(cases(path))],
)
def test_statement_gives_the_tree_or_the_error_of_the_fixture(text, expected):
    assert expected == answer(text)


def rewrite():
    for path in FILES:
        head = [block for block in path.read_text(encoding="utf-8").split("\n\n") if block.startswith("#")]
        blocks = [f"{text}\n----\n{answer(text)}" for text, _ in cases(path)]
        path.write_text("\n\n".join([*head, *blocks]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()

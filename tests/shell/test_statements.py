from __future__ import annotations

import pytest

from saros_shell.repl.statements import (
    is_complete,
    numbered_statements,
    trailing_command,
    unfinished_statement,
    unseparated_command,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;\n", []),
        ("select 1", ["select 1"]),
        ("a; b ;c", ["a", "b", "c"]),
        ("insert 'x;y'; b", ["insert 'x;y'", "b"]),
        ("a 'it''s; fine'; b", ["a 'it''s; fine'", "b"]),
        ('a "x;"; `b;c`', ['a "x;"', "`b;c`"]),
        ("a -- no; end\n; b", ["a -- no; end", "b"]),
        ("/* ; */ a; -- only a comment", ["a"]),
        ("a /* ; */ b;", ["a /* ; */ b"]),
        ("a 'open; b", ["a 'open; b"]),
        ("select 3-2/1;", ["select 3-2/1"]),
        ("\\d root.**\na; \\x\nb", ["\\d root.**", "a", "\\x", "b"]),
        ("-- why\n  \\i f;g.sql\n;a", ["\\i f;g.sql", "a"]),
        ("a '\n\\d'; b \\\nc", ["a '\n\\d'", "b \\\nc"]),
    ],
)
def test_semicolons_outside_quotes_and_comments_end_statements(text: str, expected: list[str]) -> None:
    assert expected == [statement for _, statement in numbered_statements(text)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a; b;\nc;", [1, 1, 2]),
        ("\n\n-- why\n a\nb;; \n\\d\n'\n' c; d", [4, 6, 7, 8]),
        ("a;\r\n/*\r\n*/ b;\r\nc;", [1, 3, 4]),
    ],
)
def test_a_statement_has_the_line_of_its_first_word(text: str, lines: list[int]) -> None:
    assert lines == [line for line, _ in numbered_statements(text)]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("select 1", False),
        ("select 1;", True),
        ("select 1; ", True),
        ("select 'a;", False),
        ("select 1; -- why", True),
        ("select 1; select", False),
        ("\\d root", True),
        ("/* open ;", False),
        ("help", True),
        (" Exit ", True),
        ("help select", True),
        ("helping", False),
    ],
)
def test_enter_runs_complete_statements_only(text: str, complete: bool) -> None:
    assert complete == is_complete(text)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("clear\n\\q", "\\q"),
        ("select s1\nfrom root.a\n  \\d root.**  ", "\\d root.**"),
        ("select s1 from root.a\nexit", "\\q"),
        ("select s1 from root.a\n Quit ", "\\q"),
        ("select s1 from root.a\nhelp", "\\?"),
        ("select 'a\nexit", None),
        ("select exit\nfrom root.a", None),
        ("\\q", None),
        ("select s1\nfrom root.a", None),
        ("select 'a\n\\q", None),
        ("select /* a\n\\q", None),
        ("select a \\\nq", None),
    ],
)
def test_a_command_may_interrupt_a_statement_that_has_not_ended(text: str, command: str | None) -> None:
    """A forgotten semicolon does not prevent the user from quitting or asking for help."""
    assert command == trailing_command(text)
    assert is_complete(text) is (command is not None or text == "\\q")


@pytest.mark.parametrize(
    ("statement", "command"),
    [
        ("select 1", None),
        ("select 1\n\\i a/b c.sql\nselect 2", "\\i a/b c.sql"),
        ("select 1 -- why\n  \\x\n", "\\x"),
        ("select 'a\n\\x'", None),
        ("select 1 /*\n\\x\n*/", None),
        ("select `a\n\\x`\n\\l", "\\l"),
        ("select a\\b", None),
    ],
)
def test_a_line_with_a_command_ends_a_statement_that_lacks_its_semicolon(statement: str, command: str | None) -> None:
    assert command == unseparated_command(statement)


def test_an_unfinished_statement_begins_after_the_last_semicolon() -> None:
    assert " select ';' from" == unfinished_statement("flush; select ';' from")
    assert "" == unfinished_statement("flush;")

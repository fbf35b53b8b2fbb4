from __future__ import annotations

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from saros_grammar.generated.Sql import Sql
from saros_shell.repl.completion import CommandAt, PathAt, SarosCompleter, WordAt, cursor_context
from saros_shell.repl.keywords import KEYWORDS, TYPES


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", None),
        ("sel", WordAt("sel")),
        ("select av", WordAt("av")),
        ("select * from root.", PathAt("root", "")),
        ("select * from root.plant.pu", PathAt("root.plant", "pu")),
        ("from root.a.`b.c`.s", PathAt("root.a.`b.c`", "s")),
        ("where x = 'sel", None),
        ("\\ti", CommandAt("\\ti")),
        ("\\d root.a", PathAt("root", "a")),
        ("limit 1", None),
    ],
)
def test_place_before_the_cursor(before: str, expected: object) -> None:
    assert expected == cursor_context(before)


def completions(text: str) -> list[str]:
    completer = SarosCompleter(
        lambda p: {"root": ["plant", "port"]}.get(p, []), lambda: ["avg", "abs"], ["\\d", "\\dd"]
    )
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent())]


def test_words_come_in_the_case_that_is_typed() -> None:
    assert "select" in completions("sel")
    assert "SELECT" in completions("SEL")
    assert ["avg"] == completions("select avg")


def test_paths_come_from_the_database() -> None:
    assert ["plant", "port"] == completions("select * from root.p")
    assert ["\\d", "\\dd"] == completions("\\d")


def test_every_keyword_of_the_grammar_is_coloured_and_completed() -> None:
    known = {*KEYWORDS, *TYPES}
    assert [] == [word for word in Sql.symbolicNames[Sql.ABORT : Sql.ZONE + 1] if word not in known and word != "ROOT"]

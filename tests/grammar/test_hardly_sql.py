"""Random texts are either parsed or refused with a ParseError."""

from __future__ import annotations

from random import Random

import pytest
from grammar.hardly_sql import BOMBS, bomb, draw_text

from saros_grammar.parser import parse
from saros_grammar.syntax.errors import ParseError

pytestmark = pytest.mark.slow

_QUERIES = ["select x, count(*) from root.g.* where t like 'a%' and x in (1, 2) group by ([0, 9), 1ms) fill(linear)"]


def refusal(text: str) -> int | None:
    """Return the error code with which a text is refused; None if the text is parsed."""
    try:
        parse(text)
    except ParseError as error:
        return error.code
    return None


def test_any_text_is_parsed_or_refused() -> None:
    chance = Random(3)
    parsed = 0
    for _ in range(300):
        parsed += refusal(draw_text(chance, _QUERIES)) is None
    assert 30 < parsed < 270


def test_large_texts_are_parsed_or_refused() -> None:
    for kind in range(BOMBS):
        for count in (30, 1_000):
            assert refusal(bomb(kind, count)) in (None, 700, 2006)

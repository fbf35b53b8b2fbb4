"""Random texts: statements, texts that are almost statements, and texts that are neither."""

from __future__ import annotations

import re
from random import Random

from grammar.corpus import fixture_statements
from grammar.sentences import mutated, sentence

_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|[\w.]+|\s+|.", re.DOTALL)
_BOMBS = (
    ("select ", "(", "x", ")", " from root.g.d0"),
    ("select ", "abs(", "x", ")", " from root.g.d0"),
    ("select ", "not ", "x", "", " from root.g.d0"),
    ("select x", " + x", "", "", " from root.g.d0"),
    ("select x from root.g.d0 where x > 1", " and x > 1", "", "", ""),
    ("select x from root.g.d0 where x in (1", ", 1", ")", "", ""),
    ("select x", ", x", "", "", " from root.g.d0"),
    ("select x from root.g.d0", ", root.g.*", "", "", ""),
    ("select x from root", ".**", "", "", ""),
    ("select x from root.g", ".d0", "", "", ""),
    ("select ", "case when true then ", "x", " end", " from root.g.d0"),
    ("", "explain ", "select x from root.g.d0", "", ""),
    ("select x from root.g.d0 where t = '", "a", "'", "", ""),
    ("select x from root.g.d0 where t like '", "%a", "'", "", ""),
    ("select x from root.g.d0 where t regexp '", "(a*)*", "'", "", ""),
    ("select x from root.g.d0 limit ", "9", "", "", ""),
    ("select count(x) from root.g.d0 group by ([0, ", "9", "), 1ms)", "", ""),
    ("insert into root.g.d0(time, x) values (1, 1)", ", (1, 1)", "", "", ""),
    ("delete from root.g.d9", ", root.g.d9", "", "", ""),
)


def bomb(kind: int, count: int) -> str:
    """Return the text that repeats the piece of bomb number `kind` `count` times."""
    head, piece, middle, closing, tail = _BOMBS[kind]
    return head + piece * count + middle + closing * count + tail


BOMBS = len(_BOMBS)


def draw_text(chance: Random, queries: list[str]) -> str:
    """Return a random text, sometimes a mutation of one of the valid statements in `queries`."""
    match chance.randrange(4):
        case 0:
            return " ".join(sentence(chance))
        case 1:
            return " ".join(mutated(sentence(chance, chance.choice(("statement", "select"))), chance))
        case 2:
            return "".join(mutated(_TOKEN.findall(chance.choice(fixture_statements())), chance))
        case _:
            return "".join(mutated(_TOKEN.findall(chance.choice(queries)), chance))

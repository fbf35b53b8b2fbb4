"""Kinds of statements, which decide whether a statement may be sent again if no answer arrived. Pure.

    READ        returns rows, changes nothing                yes, to any node
    REPEATABLE  FLUSH, MERGE: harmless when repeated         yes, to any node
    SETTING     SET TIME ZONE, SET ALLOW PARTIAL RESULTS:    yes, and again whenever the session is reopened
                state of the session
    INSERT      INSERT: rows                                 only with a sequence number that the node remembers
    JOB         SELECT INTO, LOAD: long-running writes       as INSERT
    WRITE       all other statements                         as INSERT

The first words of the statement decide. Mistaking another statement for a write is safe: the statement is only retried
less often.
"""

from __future__ import annotations

import re
from enum import Enum

_BLANK = re.compile(r"(?:\s|--[^\r\n]*|/\*.*?\*/)*+", re.DOTALL)
_WORDS = re.compile(r"[a-z_]+", re.IGNORECASE)
_READS = frozenset({"select", "show", "count", "explain"})


class Setting(Enum):
    """A part of the session's state that a SET statement changes. Its value is the first two words after SET."""

    ZONE = "time zone"
    PARTIAL = "allow partial"


class Kind(Enum):
    """The kind of a statement, which says whether it may be sent again."""

    READ = "read"
    REPEATABLE = "repeatable"
    SETTING = "setting"
    INSERT = "insert"
    JOB = "job"
    WRITE = "write"

    @property
    def is_write(self) -> bool:
        """True if the statement may be sent again only with a sequence number."""
        return self in (Kind.INSERT, Kind.JOB, Kind.WRITE)


def kind_of(text: str) -> Kind:
    """Return the kind of a statement."""
    first, second, third = _first_words(text)
    if first in _READS:
        into = first == "select" and re.search(r"\binto\b", text, re.IGNORECASE)
        return Kind.JOB if into else Kind.READ
    if first in ("flush", "merge") or (first, second) == ("full", "merge"):
        return Kind.REPEATABLE
    if _setting(first, second, third) is not None:
        return Kind.SETTING
    if first == "insert":
        return Kind.INSERT
    if first == "load":
        return Kind.JOB
    return Kind.WRITE


def setting_of(text: str) -> Setting:
    """Return the setting that a statement of the kind SETTING changes."""
    found = _setting(*_first_words(text))
    assert found is not None
    return found


def _setting(first: str, second: str, third: str) -> Setting | None:
    if first != "set":
        return None
    words = "time zone" if second == "time_zone" else f"{second} {third}"
    return next((setting for setting in Setting if setting.value == words), None)


def _first_words(text: str) -> tuple[str, str, str]:
    words = ["", "", ""]
    position = 0
    for number in range(len(words)):
        blank = _BLANK.match(text, position)
        word = _WORDS.match(text, position if blank is None else blank.end())
        if word is None:
            break
        words[number] = word[0].lower()
        position = word.end()
    return words[0], words[1], words[2]

"""Kinds of statements: which may be sent again if no answer came.

    READ        rows; nothing changes                        yes, anywhere
    REPEATABLE  FLUSH, MERGE: twice does no harm             yes, anywhere
    SETTING     SET TIME ZONE, SET ALLOW PARTIAL RESULTS:    yes, and wherever the session is opened again
                state of the session
    INSERT      INSERT: rows                                 only with a number that the node remembers
    JOB         SELECT INTO, LOAD: a write that works long   likewise
    WRITE       all others                                   likewise

Decided by the first words. A statement that is taken for a write by mistake is merely repeated less readily. Pure.
"""

from __future__ import annotations

import re
from enum import Enum

_BLANK = re.compile(r"(?:\s|--[^\r\n]*|/\*.*?\*/)*+", re.DOTALL)
_WORDS = re.compile(r"[a-z_]+", re.IGNORECASE)
_READS = frozenset({"select", "show", "count", "explain"})


class Setting(Enum):
    """A part of a session's state that a SET statement changes. The value: the first two words after SET."""

    ZONE = "time zone"
    PARTIAL = "allow partial"


class Kind(Enum):
    """See the module."""

    READ = "read"
    REPEATABLE = "repeatable"
    SETTING = "setting"
    INSERT = "insert"
    JOB = "job"
    WRITE = "write"

    @property
    def is_write(self) -> bool:
        """Whether the statement needs a number to be sent again."""
        return self in (Kind.INSERT, Kind.JOB, Kind.WRITE)


def kind_of(text: str) -> Kind:
    """The statement's kind."""
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
    """The setting that a statement of the kind SETTING changes."""
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

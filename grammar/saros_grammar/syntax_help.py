"""The syntax of statements in readable form, generated from the grammar file.

    deleteData: DELETE FROM path (COMMA path)* (WHERE expression)?;    ->    DELETE FROM path[, ...] [WHERE expression]

`[x]` is optional, `{x | y}` is a choice, and `[, ...]` and `[...]` repeat the item before them. The rules that a
statement uses are explained below the statement, except for well-known rules such as `path` and `expression`.

Pure, except that it reads the grammar file once. Thread-safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from saros_grammar.generated.Sql import Sql

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|#\s*\w+", re.DOTALL)
_RULE = re.compile(r"^(\w+)\s*:(.*?);", re.DOTALL | re.MULTILINE)
_SYMBOL = re.compile(r"(?:\w+\s*\+?=\s*)?(\w+|\()|([|)])|([*+?]\??)")
#: Grammar rules that are shown only by name, without an explanation.
_OPAQUE = {"expression": "expression", "path": "path", "exactPath": "path", "name": "name", "key": "name"}
_OPAQUE |= {"principal": "name", "typeName": "type", "patternNode": "node", "constant": "value", "value": "value"}
_TOKENS = {"STRING": "'text'", "INTEGER": "number", "DECIMAL": "number", "DURATION": "duration", "DATETIME": "date"}
_TOKENS |= {"NAME": "name", "QUOTED_NAME": "`name`", "TARGET_NAME": "${number}", "PARAMETER": "?", "BLOB": "X'00ff'"}
_TOKENS |= {"ROOT": "root", "EQUAL": "="}


class _Item(msgspec.Struct, frozen=True):
    """A symbol, or the alternatives of a group, with its quantifier: "", "?", "*" or "+"."""

    content: str | tuple[tuple[_Item, ...], ...]
    repeat: str = ""


def topics() -> list[str]:
    """Return the first words of all statements, sorted."""
    return sorted({word for line, _ in _statements() for word in _first_words(line)})


def syntax_of(topic: str) -> list[str]:
    """Return lines that explain the statements on a topic, such as `create timeseries` (case is ignored).

    A statement can begin with the first word of the topic, and has the other words after it, in this order. If there
    is no such statement, explain clauses of SELECT instead.
    """
    words = topic.upper().split()
    found = [form for form in _statements() if _is_about(form[0], words)]
    found = found or [form for form in _clauses() if _is_about(form[0], words)]
    used: dict[str, None] = {}
    for _, alternative in found:
        _collect(alternative, used)
    explained = [line for rule in used for line in _explained(rule)]
    return [line for line, _ in found] + (["", "where", *explained] if explained else [])


def _is_about(line: str, words: Sequence[str]) -> bool:
    """Return whether the line contains the words in this order, and can begin with the first word."""
    rest = iter(re.findall(r"\w+", line))
    return bool(words) and words[0] in _first_words(line) and all(word in rest for word in words)


def _first_words(line: str) -> list[str]:
    """Return the words with which a statement can begin, as in `{DELETE | DROP} ...` or `[FULL] MERGE ...`."""
    begin = re.match(r"(?:\[\w+\] )?(?:\{[^}]*\}|\w+)", line)
    return re.findall(r"[A-Z_]+", begin.group()) if begin else []


@cache
def _rules() -> dict[str, tuple[tuple[_Item, ...], ...]]:
    text = _COMMENTS.sub("", _grammar_file().read_text(encoding="utf-8"))
    return {name: _alternatives(iter(_SYMBOL.findall(body))) for name, body in _RULE.findall(text)}


def _grammar_file() -> Path:
    """Return the path of Sql.g4: in the package if it was installed from a wheel, otherwise next to the package."""
    packaged = Path(__file__).with_name("Sql.g4")
    return packaged if packaged.exists() else packaged.parents[1] / packaged.name


def _alternatives(symbols: Iterator[tuple[str, str, str]]) -> tuple[tuple[_Item, ...], ...]:
    """Read the alternatives up to the end of a group or of the rule."""
    found: list[list[_Item]] = [[]]
    for symbol, mark, repeat in symbols:
        if repeat:
            found[-1][-1] = _Item(found[-1][-1].content, repeat[0])
        elif symbol == "(":
            found[-1].append(_Item(_alternatives(symbols)))
        elif symbol:
            found[-1].append(_Item(symbol))
        elif mark == "|":
            found.append([])
        else:
            break
    return tuple(map(tuple, found))


@cache
def _statements() -> list[tuple[str, tuple[_Item, ...]]]:
    """Return every form of every statement. Each form consists of its line and its symbols."""
    return _forms(str(items[0].content) for items in _rules()["statement"])


@cache
def _clauses() -> list[tuple[str, tuple[_Item, ...]]]:
    """Return every form of every clause of SELECT. Each form consists of its line and its symbols."""
    return _forms(("into", "sources", "clause"))


def _forms(rules: Iterable[str]) -> list[tuple[str, tuple[_Item, ...]]]:
    return [(_sequence(form), form) for rule in rules for form in _rules()[rule]]


def _collect(items: Sequence[_Item], used: dict[str, None]) -> None:
    """Add the rules that need an explanation to `used`, in the order in which a reader meets them."""
    for item in items:
        if not isinstance(item.content, str):
            for alternative in item.content:
                _collect(alternative, used)
        elif item.content in _rules() and not _is_known(item.content) and item.content not in used:
            used[item.content] = None
            for alternative in _rules()[item.content]:
                _collect(alternative, used)


def _is_known(rule: str) -> bool:
    return rule in _OPAQUE or rule == "statement" or rule.endswith("Word")


def _explained(rule: str) -> list[str]:
    first, *more = map(_sequence, _rules()[rule])
    name = f"  {_spelled(rule)} is "
    return [f"{name}one of", *(f"    {form}" for form in (first, *more))] if more else [name + first]


def _sequence(items: Sequence[_Item]) -> str:
    words: list[str] = []
    for item in items:
        before = words[-1] if words else ""
        text = _item(item)
        if before and text in (f"[, {before} ...]", f"[[,] {before} ...]"):
            words[-1] = f"{before}[, ...]"
        elif text:
            words.append(text)
    line = " ".join(words)
    return re.sub(r"(?<=[(\[.]) | (?=[)\],.](?!\.))", "", line)


def _item(item: _Item) -> str:
    if isinstance(item.content, str):
        text, alone = _spelled(item.content), True
    else:
        choice = " | ".join(map(_sequence, item.content))
        alone = len(item.content) == 1
        text = choice if alone or item.repeat in ("?", "*") else f"{{{choice}}}"
    repeats = {"": text, "?": f"[{text}]", "*": f"[{text} ...]", "+": f"{text} [...]"}
    return repeats[item.repeat] if text else ""


def _spelled(symbol: str) -> str:
    """Return a token as a user types it, or the placeholder of a rule."""
    if symbol.endswith("Word"):
        return _sequence(_rules()[symbol][0])
    if not symbol.isupper():
        return _OPAQUE.get(symbol) or re.sub(r"(?<!^)([A-Z])", r"_\1", symbol).lower()
    kind = Sql.symbolicNames.index(symbol) if symbol in Sql.symbolicNames else 0
    literal = Sql.literalNames[kind] if kind < len(Sql.literalNames) else "<INVALID>"
    return _TOKENS.get(symbol) or (symbol if literal == "<INVALID>" else literal.strip("'"))

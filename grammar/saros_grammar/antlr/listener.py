"""Syntax errors: turns ANTLR's first error into a readable ParseError with the unexpected and the expected tokens.

`MistakeListener` raises at the first error, so ANTLR's recovery never runs. The expected tokens come from the parser's
state. If the prediction of an alternative failed, they come from the states in which the prediction failed. If a name
is expected, "a name" replaces the many tokens that can be a name.

Each parse has its own listener.
"""

from __future__ import annotations

import difflib
import re
from itertools import chain
from typing import Any, NoReturn

from antlr4.error.ErrorListener import ErrorListener
from antlr4.error.Errors import NoViableAltException
from antlr4.Token import Token

from saros_grammar.generated.Sql import Sql
from saros_grammar.syntax.errors import ParseError, error_at

#: The maximum number of expected words in a message, so that the list stays readable. A longer list ends in "...".
EXPECTED_MAX = 6

_WORDS = {
    Token.EOF: "the end",
    Sql.STRING: "a string",
    Sql.BLOB: "a blob",
    Sql.DATETIME: "a date",
    Sql.DURATION: "a duration such as 30m, 1h or 1d",
    Sql.DECIMAL: "a number",
    Sql.INTEGER: "a number",
    Sql.NAME: "a name",
    Sql.QUOTED_NAME: "a name",
    Sql.TARGET_NAME: "a name",
    Sql.PARAMETER: "?",
    Sql.ROOT: "a path (root...)",
    Sql.EQUAL: "=",
    Sql.NOT_EQUAL: "!=",
    Sql.AMPERSAND: "&",
    Sql.BAR: "|",
}
#: If all of these tokens are expected, the message says that an expression is expected.
_EXPRESSION = frozenset({Sql.NAME, Sql.STRING, Sql.LEFT_PARENTHESIS, Sql.CASE, Sql.BANG})
_OPERATORS = frozenset(
    {Sql.PLUS, Sql.MINUS, Sql.STAR, Sql.SLASH, Sql.PERCENT, Sql.EQUAL, Sql.NOT_EQUAL, Sql.LESS, Sql.LESS_EQUAL}
    | {Sql.GREATER, Sql.GREATER_EQUAL, Sql.AMPERSAND, Sql.BAR, Sql.AND, Sql.OR, Sql.LIKE, Sql.REGEXP, Sql.BETWEEN}
    | {Sql.IN, Sql.IS, Sql.NOT, Sql.CONTAINS}
)
_KEYWORDS: tuple[str, ...] = tuple(Sql.symbolicNames[Sql.ABORT : Sql.ZONE + 1])
_KEYWORD_CHARACTERS_MAX = 20
#: A word of at least this length that ends a keyword (SERIES in TIMESERIES) is taken for a misspelling of that keyword.
_PART_CHARACTERS_MIN = 6
#: Time units that other databases use.
_UNIT = re.compile(r"\d*(milliseconds?|sec(ond)?s?|min(ute)?s?|hours?|days?|weeks?|months?|years?)", re.IGNORECASE)
#: Characters that a path may contain only inside back-quotes.
_PATH_ENDS = re.compile(r"[\s,;()'\"`=<>]")
_PLAIN_NODE = re.compile(r"[\w*]+")
_WINDOWS = frozenset({"variation", "condition", "session", "count", "tags"})
_QUOTES = {"'": "string", '"': "string", "`": "name"}


class MistakeListener(ErrorListener):  # type: ignore[misc]  # the runtime has no types
    """A listener that raises ParseError at the first error in `text`."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def syntaxError(  # noqa: N802  # ANTLR's names
        self,
        recognizer: Any,
        offendingSymbol: Any,  # noqa: N803
        line: int,  # noqa: ARG002  # error_at counts lines itself
        column: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002  # replaced by our own message
        e: Any,
    ) -> NoReturn:
        """Raise the ParseError of a syntax error. ANTLR calls this method."""
        expected = _readable(_expected_types(recognizer, offendingSymbol, e))
        before = recognizer.getTokenStream().LT(-1)
        if offendingSymbol.type == Sql.ROOT and before is not None and _closest_keyword(before) == "FROM":
            offendingSymbol = before  # noqa: N806  # a misspelt FROM was parsed as a column's alias
        if before is not None and before.type == Sql.SEMICOLON:
            raise error_at(self._text, offendingSymbol.start, "one statement at a time: this is a second one", expected)
        grouping = _grouped_column(recognizer)
        if grouping is not None:
            windows = f"GROUP BY ([start, end), 1h), GROUP BY variation({grouping.text}) or GROUP BY LEVEL = 1"
            message = f"GROUP BY takes windows or levels, not the column {grouping.text}: {windows}"
            raise error_at(self._text, grouping.start, message, expected)
        quoted = _quoted_path(self._text, offendingSymbol.start)
        if quoted is not None:
            message = f"unexpected {offendingSymbol.text!r}; in back-quotes, a name may have any characters: {quoted}"
            raise error_at(self._text, offendingSymbol.start, message, expected)
        raise _mistake(self._text, offendingSymbol, expected)


def _grouped_column(parser: Any) -> Any:
    """Return the first token of a GROUP BY item that is a column instead of a window, or None for other errors."""
    context = parser._ctx  # noqa: SLF001  # the runtime has no other way to get the rule in progress
    if context.getRuleIndex() != Sql.RULE_grouping or context.kind is None or context.LEFT_PARENTHESIS() is not None:
        return None
    return context.kind.start if context.kind.start.text.lower() not in _WINDOWS else None


def _quoted_path(text: str, offset: int) -> str | None:
    """Return the path around `offset` with the back-quotes that it lacks, or None if there is no such path."""
    begin = max((found.end() for found in _PATH_ENDS.finditer(text, 0, offset)), default=0)
    end = _PATH_ENDS.search(text, offset)
    path = text[begin : end.start() if end else len(text)]
    nodes = path.rstrip(".").split(".")
    unusual = [node for node in nodes if not _PLAIN_NODE.fullmatch(node)]
    if begin == offset or nodes[0].lower() != "root" or not unusual or any("*" in node or not node for node in unusual):
        return None
    return ".".join(f"`{node}`" if node in unusual else node for node in nodes)


def _mistake(text: str, token: Any, expected: tuple[str, ...]) -> ParseError:
    meant = _closest_keyword(token)
    if meant is not None:
        message = f"unexpected {token.text!r}; did you mean {meant}?"
        return error_at(text, token.start, message, (meant,))
    hint = f"; expected {_listed(expected)}" if expected else ""
    if token.type == Token.EOF:
        return error_at(text, len(text.rstrip()), f"the statement ends too early{hint}", expected)
    shown = token.text
    if shown in _QUOTES:
        return error_at(text, token.start, f"a quoted {_QUOTES[shown]} begins here and does not end", expected)
    if token.type == Sql.INTEGER and "a name" in expected:
        hint += f" (a name of digits only needs back-quotes: `{shown}`)"
    if _UNIT.fullmatch(shown):
        hint += "; durations are one word, such as 30m, 1h or 1d" if _WORDS[Sql.DURATION] not in expected else ""
    if token.type in (Sql.ROOT, Sql.TIME, Sql.TIMESTAMP) and "a name" in expected:
        hint += f" ({shown} is not allowed as a name here)"
    return error_at(text, token.start, f"unexpected {shown[:40]!r}{hint}", expected)


def _closest_keyword(token: Any) -> str | None:
    """Return the keyword that a misspelt word resembles, or None if no keyword is similar.

    The first choice is a keyword with the same letters in another order, the second a keyword that ends in the word,
    and the last the most similar keyword.
    """
    if token.type != Sql.NAME or len(token.text) > _KEYWORD_CHARACTERS_MAX:
        return None
    word = token.text.upper()
    close = difflib.get_close_matches(word, _KEYWORDS, n=5, cutoff=0.75)
    swapped = (keyword for keyword in close if sorted(keyword) == sorted(word))
    longer = (keyword for keyword in _KEYWORDS if len(word) >= _PART_CHARACTERS_MIN and keyword.endswith(word))
    return next(chain(swapped, longer, close), None)


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _expected_types(parser: Any, token: Any, error: Any) -> frozenset[int]:
    """Return the token types that are allowed in place of `token`."""
    if isinstance(error, NoViableAltException) and error.startToken is not token and error.deadEndConfigs:
        return _next_token_types(error.deadEndConfigs)
    found = parser.getExpectedTokens()
    return frozenset(kind for interval in found.intervals or () for kind in interval)


def _next_token_types(configs: Any) -> frozenset[int]:
    types: set[int] = set()
    for config in configs:
        for transition in config.state.transitions:
            if not transition.isEpsilon and transition.label is not None:
                types.update(kind for interval in transition.label.intervals or () for kind in interval)
    return frozenset(types)


def _readable(types: frozenset[int]) -> tuple[str, ...]:
    rest = set(types)
    words: list[str] = []
    if {Sql.SELECT, Sql.INSERT} <= rest and Sql.NAME not in rest:
        return ("a statement such as SELECT, INSERT, CREATE or SHOW",)
    if rest >= _EXPRESSION:
        words.append("an expression")
        rest -= _EXPRESSION | {Sql.NOT, Sql.ROOT, Sql.TIME, Sql.TIMESTAMP, Sql.PARAMETER, Sql.DOT, Sql.DOUBLE_STAR}
        rest = {t for t in rest if t not in _WORDS and not _is_keyword(t)} - {Sql.PLUS, Sql.MINUS, Sql.STAR}
    elif Sql.NAME in rest:
        words.append("a name")
        rest = {t for t in rest if t not in (Sql.NAME, Sql.QUOTED_NAME, Sql.DURATION, Sql.TARGET_NAME)}
        rest = {t for t in rest if not _is_keyword(t)} - {Sql.DOUBLE_STAR}
    if len(rest & _OPERATORS) > len(_OPERATORS) // 2:
        words.append("an operator")
        rest -= _OPERATORS
    words += sorted({_WORDS.get(t) or _spelled(t) for t in rest})
    return tuple(words[:EXPECTED_MAX]) + (("...",) if len(words) > EXPECTED_MAX else ())


def _is_keyword(kind: int) -> bool:
    return Sql.ABORT <= kind <= Sql.ZONE


def _spelled(kind: int) -> str:
    names: list[str] = Sql.literalNames
    name = names[kind] if 0 <= kind < len(names) else "<INVALID>"
    return name.strip("'") if name != "<INVALID>" else str(Sql.symbolicNames[kind]).lower()

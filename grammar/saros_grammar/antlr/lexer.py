"""The lexer: one pass of a regular expression, or ANTLR's lexer if the two might give different tokens.

The regular expression handles ASCII texts without comments, target names (`${1}`), or numbers whose end is ambiguous.
ANTLR's lexer reads any other text as a whole. The regular expression gives the same tokens as ANTLR's lexer (tests
compare them) in a tenth of the time. These tokens have no lines and columns. Therefore, ANTLR reads the text a second
time to report an error.

Thread-safe.
"""

from __future__ import annotations

import re
from typing import Any

from antlr4 import CommonTokenStream, InputStream
from antlr4.Token import CommonToken, Token

from saros_grammar.generated.Sql import Sql

#: The beginnings of tokens that `_TOKEN` does not match.
_DOUBTFUL = re.compile(r"--|/\*|\$")
_TOKEN = re.compile(
    r"""(?P<WHITESPACE>[ \t\r\n\v\f]+)
    |(?P<BLOB>[xX]'[^']*')
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>::|\*\*|==|!=|<>|<=|>=|&&|\|\||[.,;:*()\[\]+\-/%=<>!&|?])
    |(?P<INTEGER>\d+)(?![\w./\-])
    |(?P<DECIMAL>\d+\.\d+)(?![\w./\-])
    |(?P<DURATION>(?:\d+(?:ns|us|ms|mo|cw|cd|[ywdhms]))+)(?!\w)
    |(?P<DATETIME>\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?)(?![\w.:+\-/]|\ +\d)
    |(?P<STRING>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")
    |(?P<QUOTED_NAME>`[^`]+(?:``[^`]*)*`)""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
_KEYWORDS = {Sql.symbolicNames[type_]: type_ for type_ in range(Sql.ABORT, Sql.ZONE + 1)}
_SIGNS = {
    ".": Sql.DOT,
    ",": Sql.COMMA,
    ";": Sql.SEMICOLON,
    ":": Sql.COLON,
    "::": Sql.DOUBLE_COLON,
    "*": Sql.STAR,
    "**": Sql.DOUBLE_STAR,
    "(": Sql.LEFT_PARENTHESIS,
    ")": Sql.RIGHT_PARENTHESIS,
    "[": Sql.LEFT_BRACKET,
    "]": Sql.RIGHT_BRACKET,
    "+": Sql.PLUS,
    "-": Sql.MINUS,
    "/": Sql.SLASH,
    "%": Sql.PERCENT,
    "=": Sql.EQUAL,
    "==": Sql.EQUAL,
    "!=": Sql.NOT_EQUAL,
    "<>": Sql.NOT_EQUAL,
    "<": Sql.LESS,
    "<=": Sql.LESS_EQUAL,
    ">": Sql.GREATER,
    ">=": Sql.GREATER_EQUAL,
    "!": Sql.BANG,
    "&": Sql.AMPERSAND,
    "&&": Sql.AMPERSAND,
    "|": Sql.BAR,
    "||": Sql.BAR,
    "?": Sql.PARAMETER,
}
_NO_SOURCE = (None, None)


def tokens_of(text: str) -> CommonTokenStream:
    """Return all tokens of a text."""
    known = _match_tokens(text) if text.isascii() and not _DOUBTFUL.search(text) else None
    if known is None:
        return exact_tokens_of(text)
    stream = CommonTokenStream(None)
    stream.tokens = known
    stream.fetchedEOF = True
    return stream


def exact_tokens_of(text: str) -> CommonTokenStream:
    """Return all tokens of a text from ANTLR's lexer, with lines and columns."""
    from saros_grammar.generated.SqlLexer import SqlLexer  # its tables take 50 ms, and few texts need them

    stream = CommonTokenStream(SqlLexer(InputStream(text)))
    stream.fill()
    return stream


def _match_tokens(text: str) -> list[Any] | None:
    """Return the tokens, or None if any part of the text does not match the regular expression."""
    tokens: list[Any] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        kind, part = found.lastgroup or "", found[0]
        if kind == "word":
            type_ = _KEYWORDS.get(part.upper(), Sql.NAME)
        elif kind == "sign":
            type_ = _SIGNS[part]
        else:
            type_ = getattr(Sql, kind)
        channel = Token.HIDDEN_CHANNEL if type_ == Sql.WHITESPACE else Token.DEFAULT_CHANNEL
        tokens.append(_token(type_, channel, at, found.end(), part, len(tokens)))
        at = found.end()
    tokens.append(_token(Token.EOF, Token.DEFAULT_CHANNEL, at, at, "<EOF>", len(tokens)))
    return tokens


def _token(type_: int, channel: int, start: int, end: int, text: str, index: int) -> Any:
    token = CommonToken(_NO_SOURCE, type_, channel, start, end - 1)
    token.text = text
    token.tokenIndex = index
    return token

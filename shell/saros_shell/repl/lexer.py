"""Syntax colours: a pygments lexer of the dialect."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, Punctuation, String, Whitespace

from saros_shell.repl.keywords import CONSTANTS, KEYWORDS, TYPES


class SarosLexer(RegexLexer):
    """A lexer of statements and backslash commands, which accepts any text."""

    name = "saros"
    flags = re.IGNORECASE
    tokens: ClassVar[dict[str, list[Any]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"--[^\n]*", Comment.Single),
            (r"/\*.*?(\*/|$)", Comment.Multiline),
            (r"^\\\S+", Name.Decorator),
            (r"'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?", String),
            (r"root(?:\.(?:`(?:[^`]|``)*`?|\*\*?|[\w*]+))*\.?", Name.Namespace),
            (r"`(?:[^`]|``)*`?", Name.Variable),
            (r"\d{4}[-/.]\d\d[-/.]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?", Literal.Date),
            (r"(?:\d+(?:mo|cw|cd|ms|us|ns|[ywdhms]))+\b", Literal.Date),
            (r"\d+(?:\.\d*)?(?:e[+-]?\d+)?", Number),
            (words(KEYWORDS, prefix=r"(?<![.\w])", suffix=r"\b(?!\s*\.)"), Keyword),
            (words(TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (words(CONSTANTS, prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (r"[a-z_]\w*(?=\s*\()", Name.Function),
            (r"[<>=!+\-*/%&|]+", Operator),
            (r"[(),;.\[\]?]", Punctuation),
            (r"[^\W\d]\w*", Name),
            (r".", Name),
        ]
    }

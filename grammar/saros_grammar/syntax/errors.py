"""Errors of the front end: an invalid text (`ParseError`), or invalid values for the `?` in a text (`BindError`).

Both have a status code from the table of the wire protocol, which this package does not import.
"""

from __future__ import annotations

#: SQL_PARSE_ERROR, SEMANTIC_ERROR, INVALID_PARAMETER and STATEMENT_TOO_LARGE of the status table.
PARSE_ERROR = 700
SEMANTIC_ERROR = 701
INVALID_PARAMETER = 2003
STATEMENT_TOO_LARGE = 2006

#: The maximum number of characters around the mistake that `caret` shows of a line.
_CARET_WIDTH = 120


class SqlError(Exception):
    """The base class of this package's errors, which ask the caller to correct the statement or its parameters."""

    code = PARSE_ERROR


class ParseError(SqlError):
    """The text is not a statement. `line` counts from 1, `column` from 0. `expected` has a few readable words."""

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        line: int = 1,
        column: int = 0,
        expected: tuple[str, ...] = (),
        code: int = PARSE_ERROR,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.line = line
        self.column = column
        self.expected = expected
        self.code = code

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column + 1}: {self.message}"

    def caret(self) -> str:
        """Return the line with the mistake, and a caret below the mistake.

        If the line is long, return only the part around the mistake.
        """
        lines = self.text.split("\n")
        source = lines[self.line - 1].rstrip("\r") if self.line <= len(lines) else ""
        first = max(0, self.column - _CARET_WIDTH // 2) if len(source) > _CARET_WIDTH else 0
        shown = source[first : first + _CARET_WIDTH]
        # Tabs keep their width, so that the caret stays below its character.
        pad = "".join("\t" if c == "\t" else " " for c in shown[: self.column - first])
        return f"{shown}\n{pad}^"


class BindError(SqlError):
    """There are too many or too few values for the `?`, or the value at `index` (from 0) has the wrong type."""

    code = INVALID_PARAMETER

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index


def error_at(
    text: str, offset: int, message: str, expected: tuple[str, ...] = (), code: int = PARSE_ERROR
) -> ParseError:
    """Return a ParseError at character `offset` of `text`."""
    line_start = text.rfind("\n", 0, offset) + 1
    line = text.count("\n", 0, offset) + 1
    return ParseError(message, text=text, line=line, column=offset - line_start, expected=expected, code=code)

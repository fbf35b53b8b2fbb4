"""Errors of the engine, in addition to the errors of storage and grammar.

Each class of errors requires a different reaction.

EngineError            root: `code` (see `saros_wire.status`) and a message with the next step
 ├─ SemanticError      the statement contradicts the schema or itself: change it
 ├─ StatementNotAllowed  the session refuses the statement: use another one
 ├─ NotSupportedError  part of the dialect that is not implemented: use another way
 ├─ MemoryExceeded     the query holds too much memory: narrow it
 │   └─ MemoryPoolExhausted   all queries together hold too much memory: run it again later
 ├─ ExtensionFailed    a user-defined function raised an exception, or returned an invalid result
 ├─ QueryKilled        the query was killed
 └─ QueryNotFound      no query has the id
"""

from __future__ import annotations

from collections.abc import Sequence


class EngineError(Exception):
    """Root of the engine's errors."""

    code: int = 2001

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class SemanticError(EngineError):
    """The statement has no valid meaning."""

    code = 701


class StatementNotAllowed(EngineError):
    """The session refuses the statement, regardless of its user's privileges."""

    code = 301


class NotSupportedError(EngineError):
    """The statement uses a part of the dialect that is not implemented; `what` names this part."""

    code = 2002

    def __init__(self, what: str) -> None:
        super().__init__(f"not supported yet: {what}")
        self.what = what


class MemoryExceeded(EngineError):
    """The query needs more memory than its limit."""

    code = 709


class MemoryPoolExhausted(MemoryExceeded):
    """The memory pool shared by all queries of the node is exhausted, or took memory back from this query."""

    code = 2033


class ExtensionFailed(EngineError):
    """User-defined code failed; the message names the code, the place in it, and the reason."""

    code = 2080


class QueryKilled(EngineError):
    """The query was ended before it finished."""

    code = 715

    @classmethod
    def by_client(cls) -> QueryKilled:
        """Return the error to raise when a closed result is read."""
        return cls("the client closed the result")


class QueryNotFound(EngineError):
    """No query has this id."""

    code = 714

    def __init__(self, query: str, silent: Sequence[str] = ()) -> None:
        """`silent` has one text for each node that did not report its queries.

        The text names the node and the reason.
        """
        message = f"no query {query} is running: see SHOW QUERIES"
        super().__init__("; ".join([message, *silent]))
        self.query = query

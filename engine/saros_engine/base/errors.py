"""What the engine raises beside storage's and the grammar's errors, one class per what the caller should do.

EngineError            root: `code` (see `saros_wire.status`) and a sentence that says what to do
 ├─ SemanticError      the statement does not fit the schema or itself: change it
 ├─ StatementNotAllowed  the session takes no such statement: use another one
 ├─ NotSupportedError  part of the dialect that is not built yet: use another way
 ├─ MemoryExceeded     the query holds too much: narrow it
 │   └─ MemoryPoolExhausted   all queries together do: run it again later
 ├─ ExtensionFailed    a function that a user wrote raised, or answered what it may not
 ├─ QueryKilled        somebody ended the query
 └─ QueryNotFound      there is no such query
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
    """The statement cannot mean anything as it is."""

    code = 701


class StatementNotAllowed(EngineError):
    """The session does not take the statement, whatever its user may do."""

    code = 301


class NotSupportedError(EngineError):
    """`what` is part of the dialect and not built yet."""

    code = 2002

    def __init__(self, what: str) -> None:
        super().__init__(f"not supported yet: {what}")
        self.what = what


class MemoryExceeded(EngineError):
    """The query may not hold what it needs."""

    code = 709


class MemoryPoolExhausted(MemoryExceeded):
    """The node's queries together may not hold what the query needs, or held."""

    code = 2033


class ExtensionFailed(EngineError):
    """Code that is no part of Saros failed; the message says which, where, and why."""

    code = 2080


class QueryKilled(EngineError):
    """The query was ended before it was done."""

    code = 715

    @classmethod
    def by_client(cls) -> QueryKilled:
        """Return the error of reads from a result that the client has closed."""
        return cls("the client closed the result")


class QueryNotFound(EngineError):
    """No query has this id."""

    code = 714

    def __init__(self, query: str, silent: Sequence[str] = ()) -> None:
        """`silent`: why some nodes do not say what runs there."""
        message = f"no query {query} is running: look with SHOW QUERIES"
        super().__init__("; ".join([message, *silent]))
        self.query = query

"""How a failed call is reported to a client: a status code, a sentence, and the rows that a write did not get in."""

from __future__ import annotations

import logging

from saros_cluster.database.partial_failure import PartialFailure, RowsLeft

logger = logging.getLogger(__name__)

_INTERNAL = 2001


class BadMessage(Exception):
    """A request that cannot be read."""

    code = 2003


def refusal_of(error: Exception) -> tuple[int, str]:
    """Code and message of an error; one without a code is our bug, and is logged."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        logger.error("a call failed", exc_info=error)
        code = _INTERNAL
    caret = getattr(error, "caret", None)
    return code, str(error) if caret is None else f"{error}\n{caret()}"


def rows_left_of(error: Exception) -> RowsLeft | None:
    """Return the rows of a write that was done in part; None: the error is of another kind."""
    return error.rows if isinstance(error, PartialFailure) else None

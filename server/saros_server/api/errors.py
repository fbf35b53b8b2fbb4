"""How a failed call is reported to its client: status code, message, and the rows that a partial write left out."""

from __future__ import annotations

import logging

from saros_cluster.database.partial_failure import PartialFailure, RowsLeft

logger = logging.getLogger(__name__)

_INTERNAL = 2001


class BadMessage(Exception):
    """A request that cannot be decoded."""

    code = 2003


def refusal_of(error: Exception) -> tuple[int, str]:
    """Return the code and the message of an error. An error without a code is a bug in Saros; this function logs it."""
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        logger.error("a call failed", exc_info=error)
        code = _INTERNAL
    caret = getattr(error, "caret", None)
    return code, str(error) if caret is None else f"{error}\n{caret()}"


def rows_left_of(error: Exception) -> RowsLeft | None:
    """Return the rows that a partial write left out, or None for any other error."""
    return error.rows if isinstance(error, PartialFailure) else None

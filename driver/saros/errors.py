"""Exceptions: PEP 249's tree, with a stable status code on each.

Warning
Error                       .code (see docs/errors.md), .status (its name), .advice (what to do)
 ├─ InterfaceError          the driver was used wrongly (closed cursor, nothing to fetch)
 └─ DatabaseError
     ├─ BulkError           rows of a bulk writer were not acknowledged: .failures holds them
     ├─ DataError           a value does not fit
     ├─ OperationalError    time-out, cancelled, disk full, folder in use, corrupt file
     │   └─ PartialWriteError    a write was done in part (2020): .missing names the rows to send again
     ├─ IntegrityError      something exists already, or does not exist
     ├─ InternalError       a bug in Saros
     ├─ ProgrammingError    the statement is wrong: syntax, types, unknown function
     └─ NotSupportedError   part of the dialect, not built (yet)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saros_wire.status import ErrorClass, status_of

if TYPE_CHECKING:
    from saros.api.bulk import BulkFailure

#: Failures that a message tells; all are in `failures`.
_FAILURES_TOLD = 5
_PARTLY_DONE = 2020
#: The message of an `InterfaceError` with this code says how the call should be.
_WRONG_USE = 2003


class Warning(Exception):  # noqa: A001 - PEP 249 gives the name
    """Something worth knowing that did not stop the statement."""


class Error(Exception):
    """Root. `code` is the status code; `str` is the sentence that explains."""

    def __init__(self, message: str, code: int = 2001) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> str:
        """Name of the code, such as `SQL_PARSE_ERROR`."""
        return status_of(self.code).name

    @property
    def advice(self) -> str:
        """The remedy."""
        return status_of(self.code).advice


class InterfaceError(Error):
    """The driver was used wrongly."""

    def __init__(self, message: str, code: int = _WRONG_USE) -> None:
        super().__init__(message, code)

    @property
    def advice(self) -> str:
        """The remedy; empty where the message names it."""
        return "" if self.code == _WRONG_USE else super().advice


class DatabaseError(Error):
    """The database refused or failed."""


class BulkError(DatabaseError):
    """Rows of a bulk writer that were not acknowledged; `code` is the first one's."""

    def __init__(self, failures: Sequence[BulkFailure]) -> None:
        told = "; ".join(str(failure) for failure in failures[:_FAILURES_TOLD])
        more = f"; and {len(failures) - _FAILURES_TOLD} more" if len(failures) > _FAILURES_TOLD else ""
        code = getattr(failures[0].error, "code", None)
        super().__init__(f"not acknowledged: {told}{more}", code if isinstance(code, int) else 2001)
        self.failures = tuple(failures)


class DataError(DatabaseError):
    """A value does not fit."""


class OperationalError(DatabaseError):
    """The database could not do it now."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of a device from one time to another, both inclusive, in the database's unit."""

    device: str
    start: int
    end: int


class PartialWriteError(OperationalError):
    """Some rows of a write are written, durably; others are not, or it is not known (2020).

    The rows are in `written` and `missing`. Both are empty if the failed statement did not write rows, or if there was
    no room for them. It is safe to send the missing rows again, and also all of them.
    """

    def __init__(
        self, message: str, code: int = 2020, *, written: Sequence[RowRange] = (), missing: Sequence[RowRange] = ()
    ) -> None:
        super().__init__(message, code)
        self.written = tuple(written)
        self.missing = tuple(missing)


class IntegrityError(DatabaseError):
    """Something exists already, or does not exist."""


class InternalError(DatabaseError):
    """A bug in Saros."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """Part of the dialect, not built (yet)."""


_CLASSES: dict[ErrorClass, type[DatabaseError]] = {
    ErrorClass.PROGRAMMING: ProgrammingError,
    ErrorClass.DATA: DataError,
    ErrorClass.INTEGRITY: IntegrityError,
    ErrorClass.OPERATIONAL: OperationalError,
    ErrorClass.NOT_SUPPORTED: NotSupportedError,
    ErrorClass.INTERNAL: InternalError,
}


def database_error(message: str, code: int) -> DatabaseError:
    """The PEP 249 exception for a status code."""
    if code == _PARTLY_DONE:
        return PartialWriteError(message)
    return _CLASSES[status_of(code).error_class](message, code)


class _ErrorTranslation:
    """The context of `translated_errors`; it has no state, so there is one."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, Error):
            translated = _translated(error)
            if translated is not None:
                raise translated from error


_TRANSLATION = _ErrorTranslation()


def translated_errors() -> AbstractContextManager[None]:
    """Turn any exception with a status `code` into its PEP 249 class; others are our bugs and pass as they are.

    Halves of characters, as they come from files that were read with `errors="surrogateescape"`, are the caller's.
    """
    return _TRANSLATION


def _translated(error: Exception) -> DatabaseError | None:
    if isinstance(error, UnicodeEncodeError):
        half, start = error.object[error.start], max(error.start - 20, 0)
        message = (
            f"{error.object[start : error.end]!r} ends with {half!r}, which is no character: the text was not UTF-8"
        )
        return database_error(f"{message} where it was read", 2003)
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        return None
    caret = getattr(error, "caret", None)  # a statement's mistake: its line and a mark below it
    return database_error(str(error) if caret is None else f"{error}\n{caret()}", code)

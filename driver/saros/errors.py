"""Exceptions: PEP 249's tree, in which each exception has a stable status code.

Warning
Error                       .code (see docs/errors.md), .status (the code's name), .advice (the next step)
 ├─ InterfaceError          the driver was misused (closed cursor, nothing to fetch)
 └─ DatabaseError
     ├─ BulkError           rows were not acknowledged: .failures holds them
     ├─ DataError           a value has the wrong type or is out of range
     ├─ OperationalError    timed out, cancelled, disk full, folder in use, corrupt file
     │   └─ PartialWriteError    only a part of a write was done (2020): .missing names the rows to send again
     ├─ IntegrityError      an object already exists, or does not exist
     ├─ InternalError       a bug in Saros
     ├─ ProgrammingError    the statement is wrong: syntax, types, unknown function
     └─ NotSupportedError   a part of the dialect that Saros does not implement
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec

from saros_wire.status import ErrorClass, status_of

if TYPE_CHECKING:
    from saros.api.bulk import BulkFailure

#: Number of failures that the message of a BulkError lists. `failures` has all of them.
_FAILURES_TOLD = 5
_PARTLY_DONE = 2020
#: The message of an `InterfaceError` with this code already says how to correct the call.
_WRONG_USE = 2003


class Warning(Exception):  # noqa: A001 - PEP 249 gives the name
    """A condition that did not stop the statement. PEP 249 requires the class; Saros does not raise it."""


class Error(Exception):
    """The root of all exceptions of the driver.

    `code` is the status code, which stays the same across versions (docs/errors.md); `str()` is the explanation.
    """

    def __init__(self, message: str, code: int = 2001) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> str:
        """The name of the code, such as `SQL_PARSE_ERROR`."""
        return status_of(self.code).name

    @property
    def advice(self) -> str:
        """The suggested next step for errors with this code."""
        return status_of(self.code).advice


class InterfaceError(Error):
    """A misuse of the driver, such as fetching from a closed cursor."""

    def __init__(self, message: str, code: int = _WRONG_USE) -> None:
        super().__init__(message, code)

    @property
    def advice(self) -> str:
        """The suggested next step, or "" if the message contains it."""
        return "" if self.code == _WRONG_USE else super().advice


class DatabaseError(Error):
    """The database refused a request, or failed. The subclasses say how to react."""


class BulkError(DatabaseError):
    """Rows of a bulk writer, or of an insert of several devices, that were not acknowledged.

    `failures` has the rows with their errors (`saros.api.bulk.BulkFailure`). `code` is the code of the first error.
    """

    def __init__(self, failures: Sequence[BulkFailure]) -> None:
        told = "; ".join(str(failure) for failure in failures[:_FAILURES_TOLD])
        more = f"; and {len(failures) - _FAILURES_TOLD} more" if len(failures) > _FAILURES_TOLD else ""
        code = getattr(failures[0].error, "code", None)
        super().__init__(f"not acknowledged: {told}{more}", code if isinstance(code, int) else 2001)
        self.failures = tuple(failures)


class DataError(DatabaseError):
    """A value has the wrong type, or is out of range."""


class OperationalError(DatabaseError):
    """The database could not process the request at the moment: timed out, cancelled, no node available, disk full."""


class RowRange(msgspec.Struct, frozen=True):
    """The rows of a device from `start` to `end`, both inclusive, in the database's time precision."""

    device: str
    start: int
    end: int


class PartialWriteError(OperationalError):
    """Only some rows of a write are durable. The other rows were not written, or their outcome is unknown (2020).

    `written` and `missing` list these rows. Both are empty if the failed statement did not write rows, or if the lists
    would be too long. It is safe to send the missing rows again, and also to send all rows again.
    """

    def __init__(
        self, message: str, code: int = 2020, *, written: Sequence[RowRange] = (), missing: Sequence[RowRange] = ()
    ) -> None:
        super().__init__(message, code)
        self.written = tuple(written)
        self.missing = tuple(missing)


class IntegrityError(DatabaseError):
    """An object to be created already exists, or a named object does not exist."""


class InternalError(DatabaseError):
    """An error that indicates a bug in Saros."""


class ProgrammingError(DatabaseError):
    """The statement or an argument is wrong. Sending it again fails again."""


class NotSupportedError(DatabaseError):
    """A part of the dialect that Saros does not implement."""


_CLASSES: dict[ErrorClass, type[DatabaseError]] = {
    ErrorClass.PROGRAMMING: ProgrammingError,
    ErrorClass.DATA: DataError,
    ErrorClass.INTEGRITY: IntegrityError,
    ErrorClass.OPERATIONAL: OperationalError,
    ErrorClass.NOT_SUPPORTED: NotSupportedError,
    ErrorClass.INTERNAL: InternalError,
}


def database_error(message: str, code: int) -> DatabaseError:
    """Return the PEP 249 exception for a status code."""
    if code == _PARTLY_DONE:
        return PartialWriteError(message)
    return _CLASSES[status_of(code).error_class](message, code)


class _ErrorTranslation:
    """The context manager of `translated_errors`. It has no state, so one instance serves all callers."""

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
    """Convert exceptions with a status `code` to their PEP 249 class. Other exceptions are bugs and pass unchanged.

    A UnicodeEncodeError becomes a ProgrammingError: the caller passed lone surrogates, which come from files read with
    `errors="surrogateescape"`.
    """
    return _TRANSLATION


def _translated(error: Exception) -> DatabaseError | None:
    if isinstance(error, UnicodeEncodeError):
        half, start = error.object[error.start], max(error.start - 20, 0)
        message = f"{error.object[start : error.end]!r} ends with {half!r}, which is not a character"
        return database_error(f"{message}: the text comes from a file that is not UTF-8; read it in its encoding", 2003)
    code = getattr(error, "code", None)
    if not isinstance(code, int):
        return None
    caret = getattr(error, "caret", None)  # of a syntax error: the line, and a mark below the wrong place
    return database_error(str(error) if caret is None else f"{error}\n{caret()}", code)

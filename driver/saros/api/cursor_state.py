"""The part that `Cursor`, whose calls block a thread, and `AsyncCursor`, whose calls are awaited, have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from saros.base.fork_guard import ForkGuard, refuse_pickling
from saros.base.frames import check_installed, check_time_index
from saros.errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    import pyarrow as pa

    from saros.api.session import Described

Row = tuple[Any, ...]
#: (name, type name, None, None, None, None, nullable), as PEP 249 defines it.
Description = tuple[str, str, None, None, None, None, bool]
_O = TypeVar("_O", bound="Described")
#: The maximum number of columns that a `repr` lists.
_COLUMNS_SHOWN = 5


def failed_row(number: int) -> str:
    """Return the note for an exception of `executemany`."""
    return f"row {number} of executemany failed; the rows before it were run, those after it were not"


class CursorState(Generic[_O]):
    """The part of a cursor that does not wait: the state of its result, and the checks of arguments."""

    __reduce__ = refuse_pickling

    def __init__(self, owner: ForkGuard, *, epoch: bool, timeout: float | None) -> None:
        #: The default number of rows of `fetchmany`, which PEP 249 sets to 1.
        self.arraysize = 1
        self._owner = owner
        self._epoch = epoch
        self._timeout = timeout
        self._outcome: _O | None = None
        #: The number of points that `executemany` has written for all rows but the last one.
        self._count_before = 0
        #: The batch whose rows are being fetched, and its remaining rows.
        self._begun: tuple[pa.RecordBatch, Iterator[Row]] | None = None
        self._closed = False
        #: Set by `cancel` before it reads `_outcome`, and read by `execute` after it has set `_outcome`. Therefore, if
        #: both methods run at once, at least one of them notices the other.
        self._cancelled = False

    @property
    def description(self) -> list[Description] | None:
        """One tuple for each column of the result, or None if the last statement returned no rows.

        A tuple has the name, the type name such as "DOUBLE", four times None, and True if the column can have nulls.
        """
        outcome = self._outcome
        if outcome is None or outcome.names is None:
            return None
        columns = zip(outcome.schema, outcome.type_names, strict=True)
        return [(field.name, type_, None, None, None, None, field.nullable) for field, type_ in columns]

    @property
    def rowcount(self) -> int:
        """The number of points written or objects changed by the last statement, or -1 for a query.

        After `executemany`, it is the total over all rows.
        """
        last = -1 if self._outcome is None else self._outcome.update_count
        return last if last < 0 else self._count_before + last

    @property
    def query_id(self) -> str:
        """The id of the query for SHOW QUERIES and KILL QUERY, or "" if the last statement is not a query."""
        return "" if self._outcome is None else self._outcome.query_id

    @property
    def stale(self) -> bool:
        """True if the rows may be stale. The value is final once all rows were fetched.

        There are two reasons. With consistency "mid", the leaders did not answer in time. With "mid" or "weak", the
        rows are older than results that this connection has returned before.
        """
        return False if self._outcome is None else self._outcome.stale

    @property
    def missing(self) -> tuple[str, ...]:
        """For each group of nodes that is not available, a description of the missing data.

        The value is complete once all rows were fetched. It is empty unless partial results are allowed or the
        statement is a SHOW.
        """
        return () if self._outcome is None else tuple(self._outcome.missing)

    def __repr__(self) -> str:
        """Return the columns of the result, without waiting.

        The text omits the statement, which may contain a password.
        """
        return f"<saros.{type(self).__name__}: {self._summary()}>"

    # ------------------------------------------------------------------ inside

    def _summary(self) -> str:
        outcome = self._outcome
        if self._closed or outcome is None:
            return "closed" if self._closed else "nothing executed"
        if outcome.names is None:
            return f"no rows, rowcount {self.rowcount}"
        columns = [f"{name} {type_}" for name, type_ in zip(outcome.names, outcome.type_names, strict=True)]
        more = len(columns) - _COLUMNS_SHOWN
        return ", ".join([*columns[:_COLUMNS_SHOWN], *([f"and {more:,} columns"] if more > 0 else [])])

    def _check_statement(self, statement: object, parameters: object) -> None:
        """Check the arguments of `execute`. Raises ProgrammingError, or InterfaceError if the cursor is closed."""
        if not isinstance(statement, str):
            raise ProgrammingError(f"a statement must be a text, not {type(statement).__name__}", 2003)
        if isinstance(parameters, str | bytes | Mapping) or not hasattr(parameters, "__len__"):
            kind = type(parameters).__name__
            raise ProgrammingError(f"the values for ? must be a sequence, such as (20.5,), not {kind}", 2003)
        self._check_open()

    def _check_prepared(self, statement: object) -> None:
        """Check the argument of `prepare`. Raises InterfaceError."""
        self._check_open()
        if not isinstance(statement, str) or not statement.strip():
            raise InterfaceError("nothing to prepare: give the text of one statement", 2003)

    def _rows_of(self, batch: pa.RecordBatch) -> Iterator[Row]:
        """Begin to fetch a batch by rows, and return its rows."""
        from saros.base.columns import python_rows

        rows = iter(python_rows(batch, epoch=self._epoch))
        self._begun = batch, rows
        return rows

    def _rest_of_batch(self) -> pa.RecordBatch | None:
        """Return the remaining rows of the batch in `_begun` as a batch, or None. Afterwards, `_begun` is None."""
        if self._begun is None:
            return None
        (batch, rows), self._begun = self._begun, None
        left = sum(1 for _ in rows)
        return batch.slice(batch.num_rows - left) if left else None

    def _result(self) -> _O:
        """Return the outcome. Raises InterfaceError if it has no rows."""
        self._check_open()
        outcome = self._outcome
        if outcome is None:
            raise InterfaceError("nothing to fetch: execute a statement first")
        if outcome.names is None:
            raise InterfaceError("nothing to fetch: the last statement gives no rows")
        return outcome

    def _check_frame(self, library: str, *, time_index: bool = False) -> None:
        """Check, before anything is fetched, that the rows can become a frame of `library`. Raises InterfaceError."""
        check_installed(library)
        if time_index:
            check_time_index(self._result().schema)

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", 2014)
        self._owner.check()

"""The state of a cursor that has executed a statement, whether its rows are waited for by a thread or by a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from saros.base.fork_guard import ForkGuard
from saros.base.frames import check_installed, check_time_index
from saros.errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    import pyarrow as pa

    from saros.api.session import Described

Row = tuple[Any, ...]
#: (name, type name, None, None, None, None, whether there can be nulls), as PEP 249 defines it.
Description = tuple[str, str, None, None, None, None, bool]
_O = TypeVar("_O", bound="Described")
#: Columns that a `repr` names.
_COLUMNS_SHOWN = 5


def failed_row(number: int) -> str:
    """Return the note of an error of `executemany`."""
    return f"row {number} of executemany failed; the rows before it were run, those after it were not"


class CursorState(Generic[_O]):
    """The part of a cursor that does not wait, of `Cursor` and `AsyncCursor`."""

    def __init__(self, owner: ForkGuard, *, epoch: bool, timeout: float | None) -> None:
        #: Rows that `fetchmany` gives when it is not told; PEP 249 says 1.
        self.arraysize = 1
        self._owner = owner
        self._epoch = epoch
        self._timeout = timeout
        self._outcome: _O | None = None
        #: Points that `executemany` wrote by the rows before the last one.
        self._count_before = 0
        #: The batch whose rows are being fetched, and those that are left of it.
        self._begun: tuple[pa.RecordBatch, Iterator[Row]] | None = None
        self._closed = False
        #: Whether `cancel` was called since: written before it looks at the outcome, read when that has been set.
        self._cancelled = False

    @property
    def description(self) -> list[Description] | None:
        """One tuple per result column, or None if the last statement gives no rows."""
        outcome = self._outcome
        if outcome is None or outcome.names is None:
            return None
        columns = zip(outcome.schema, outcome.type_names, strict=True)
        return [(field.name, type_, None, None, None, None, field.nullable) for field, type_ in columns]

    @property
    def rowcount(self) -> int:
        """Points written or things changed by the last statement, of `executemany` by all rows; -1 for a query."""
        last = -1 if self._outcome is None else self._outcome.update_count
        return last if last < 0 else self._count_before + last

    @property
    def query_id(self) -> str:
        """The running query's id, as SHOW QUERIES prints it; empty if no query runs."""
        return "" if self._outcome is None else self._outcome.query_id

    @property
    def stale(self) -> bool:
        """Whether the rows may be old, for sure once all were fetched.

        `mid`: the leaders did not answer in time. `mid` and `weak`: older than what this connection has shown before.
        """
        return False if self._outcome is None else self._outcome.stale

    @property
    def missing(self) -> tuple[str, ...]:
        """The data that the rows lack, complete once all were fetched: a text for each group that is not available.

        Empty unless partial results are allowed, or the statement is a SHOW.
        """
        return () if self._outcome is None else tuple(self._outcome.missing)

    def __repr__(self) -> str:
        """The columns of the result. Not the statement, which may hold a password; and nothing is waited for."""
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
        """Raise ProgrammingError for arguments of `execute` that are none."""
        if not isinstance(statement, str):
            raise ProgrammingError(f"a statement is a text, not {type(statement).__name__}", 2003)
        if isinstance(parameters, str | bytes | Mapping) or not hasattr(parameters, "__len__"):
            raise ProgrammingError("the values for ? stand in a sequence, such as (20.5,)", 2003)
        self._check_open()

    def _check_prepared(self, statement: object) -> None:
        """Raise InterfaceError for a text that no statement can be prepared of."""
        self._check_open()
        if not isinstance(statement, str) or not statement.strip():
            raise InterfaceError("nothing to prepare: give the text of one statement", 2003)

    def _rows_of(self, batch: pa.RecordBatch) -> Iterator[Row]:
        """Return the rows of a batch, whose fetching begins."""
        from saros.base.columns import python_rows

        rows = iter(python_rows(batch, epoch=self._epoch))
        self._begun = batch, rows
        return rows

    def _rest_of_batch(self) -> pa.RecordBatch | None:
        """Return the rows that are left of the batch whose rows were being fetched; None: there are none."""
        if self._begun is None:
            return None
        (batch, rows), self._begun = self._begun, None
        left = sum(1 for _ in rows)
        return batch.slice(batch.num_rows - left) if left else None

    def _result(self) -> _O:
        """Return the outcome if it has rows. Raises InterfaceError."""
        self._check_open()
        outcome = self._outcome
        if outcome is None:
            raise InterfaceError("nothing to fetch: execute a statement first")
        if outcome.names is None:
            raise InterfaceError("nothing to fetch: the last statement gives no rows")
        return outcome

    def _check_frame(self, library: str, *, time_index: bool = False) -> None:
        """Raise InterfaceError, before anything is fetched, if the rows cannot become a frame of a library."""
        check_installed(library)
        if time_index:
            check_time_index(self._result().schema)

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", 2014)
        self._owner.check()

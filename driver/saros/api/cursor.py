"""Cursors: execute a statement, fetch what it gave, by rows or by columns.

Rows exist only here: results arrive as Arrow record batches and are turned into Python tuples batch by batch as they
are fetched. `fetch_arrow`, `fetch_pandas` and `fetch_numpy` take all that is left; `fetch_batches` streams it. What is
left begins behind the last row that was fetched, amid a batch too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from saros.api.prepared import Prepared
from saros.errors import Error, InterfaceError, ProgrammingError, translated_errors

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from saros.api.connection import Connection
    from saros.api.session import Outcome, Session
    from saros_wire.read_point import ReadPoint

Row = tuple[Any, ...]
#: (name, type name, None, None, None, None, whether there can be nulls), as PEP 249 defines it.
Description = tuple[str, str, None, None, None, None, bool]


class Cursor:
    """See the module. One thread at a time; `cancel` from any."""

    def __init__(self, connection: Connection, session: Session, *, epoch: bool, timeout: float | None) -> None:
        self.connection = connection
        #: Rows that `fetchmany` gives when it is not told; PEP 249 says 1.
        self.arraysize = 1
        self._session = session
        self._epoch = epoch
        self._timeout = timeout
        self._outcome: Outcome | None = None
        #: What `executemany` wrote by the rows before the last one.
        self._count_before = 0
        self._rows: Iterator[Row] | None = None
        #: The batch whose rows are being fetched, and those that are left of it.
        self._begun: tuple[pa.RecordBatch, Iterator[Row]] | None = None
        self._closed = False
        #: Whether `cancel` was called since: written before it looks at the outcome, read when that has been set.
        self._cancelled = False

    # ------------------------------------------------------------------ executing

    def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Self:
        """Run one statement; `parameters` are bound to its `?`s as values, never as text.

        `at`: the moment that a SELECT sees (`Connection.hold`).

        Raises the PEP 249 error for the status code (docs/errors.md).
        """
        if not isinstance(statement, str):
            raise ProgrammingError(f"a statement is a text, not {type(statement).__name__}", 2003)
        if isinstance(parameters, str | bytes | Mapping) or not hasattr(parameters, "__len__"):
            raise ProgrammingError("the values for ? stand in a sequence, such as (20.5,)", 2003)
        self._check_open()
        self._finish()
        self._count_before = 0
        self._cancelled = False
        with translated_errors():
            self._outcome = self._session.execute(statement, parameters, self._timeout, at=at)
        if self._cancelled:
            self._outcome.close()
        return self

    def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Self:
        """Run the statement once per parameter row. For bulk writes use `Connection.insert`.

        If a row fails, a note of the exception says which one, and the rows after it are not run.
        """
        self._check_open()
        count = 0
        for number, parameters in enumerate(rows, 1):
            try:
                self.execute(statement, parameters)
            except Error as error:
                error.add_note(
                    f"row {number} of executemany failed; the rows before it were run, those after it were not"
                )
                raise
            self._count_before = count
            count = self.rowcount
        return self

    def prepare(self, statement: str) -> Prepared:
        """A statement that is executed again and again; what is wrong with it shows when it is."""
        self._check_open()
        return Prepared(self, statement)

    def cancel(self) -> None:
        """Stop the running statement; its fetch raises OperationalError. Any thread.

        One that is still being executed is stopped when `execute` returns.
        """
        self._cancelled = True
        outcome = self._outcome
        if outcome is not None:
            outcome.close()

    # ------------------------------------------------------------------ what was executed

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
        """The running query's id, as SHOW QUERIES prints it; empty if there is none."""
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

    # ------------------------------------------------------------------ rows

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        return next(self._row_iterator(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """At most `size` (default `arraysize`) rows."""
        wanted = self.arraysize if size is None else size
        return list(islice(self._row_iterator(), max(wanted, 0)))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(self._row_iterator())

    def __iter__(self) -> Iterator[Row]:
        return self._row_iterator()

    # ------------------------------------------------------------------ columns

    def fetch_batches(self) -> Iterator[pa.RecordBatch]:
        """The Arrow record batches that are left, as they come."""
        return self.fetch_stream()[1]

    def fetch_stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The result's Arrow schema, and its batches as they come."""
        outcome = self._result()
        return outcome.schema, self._batches_left(outcome)

    def fetch_arrow(self) -> pa.Table:
        """All that is left as one Arrow table; the Time column is a timestamp in the session's zone."""
        import pyarrow as pa

        schema, batches = self.fetch_stream()
        return pa.Table.from_batches(list(batches), schema=schema)

    def fetch_pandas(self) -> pd.DataFrame:
        """All that is left as a DataFrame (needs pandas)."""
        frame: pd.DataFrame = self.fetch_arrow().to_pandas()
        return frame

    def fetch_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """All that is left as arrays by column name; time as int64 in the database's unit.

        A column with nulls is a masked array (numpy.ma); text is an object array.
        """
        from saros.base.columns import numpy_columns

        return numpy_columns(self.fetch_arrow())

    # ------------------------------------------------------------------ the rest of PEP 249

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Nothing: values say what they are."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: values of any size are fetched whole."""

    def close(self) -> None:
        """Close; a query that still runs is cancelled. Idempotent."""
        self._closed = True
        if self.connection.owner.is_own_process:
            self._finish()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ inside

    def _row_iterator(self) -> Iterator[Row]:
        outcome = self._result()
        if self._rows is None:
            self._rows = self._make_rows(outcome)
        return self._rows

    def _make_rows(self, outcome: Outcome) -> Iterator[Row]:
        from saros.base.columns import python_rows

        with self._ended_by_ctrl_c():
            for batch in self._batches(outcome):
                rows = iter(python_rows(batch, epoch=self._epoch))
                self._begun = batch, rows
                yield from rows

    def _batches_left(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        if self._begun is not None:
            (batch, rows), self._begun = self._begun, None
            left = sum(1 for _ in rows)
            if left:
                yield batch.slice(batch.num_rows - left)
        yield from self._batches(outcome)

    def _batches(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        while True:
            with self._ended_by_ctrl_c(), translated_errors():
                batch = outcome.next_batch()
            if batch is None:
                return
            yield batch

    @contextmanager
    def _ended_by_ctrl_c(self) -> Iterator[None]:
        """What a fetch had taken when it was broken off is lost: none may go on behind it as if nothing were."""
        try:
            yield
        except KeyboardInterrupt:
            self._finish()
            raise

    def _result(self) -> Outcome:
        self._check_open()
        outcome = self._outcome
        if outcome is None:
            raise InterfaceError("nothing to fetch: execute a statement first")
        if outcome.names is None:
            raise InterfaceError("nothing to fetch: the last statement gives no rows")
        return outcome

    def _finish(self) -> None:
        outcome, self._outcome, self._rows, self._begun = self._outcome, None, None, None
        if outcome is not None:
            outcome.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed", 2014)
        self.connection.owner.check()

"""Cursors: execute a statement, fetch what it gave, by rows or by columns.

Rows exist only here: results arrive as Arrow record batches and are turned into Python tuples batch by batch as they
are fetched. `fetch_arrow`, `fetch_pandas` and `fetch_numpy` take all that is left; `fetch_batches` streams it. What is
left begins behind the last row that was fetched, amid a batch too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from saros.api.cursor_state import CursorState, Description, Row, failed_row
from saros.api.prepared import Prepared
from saros.errors import Error, translated_errors

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from saros.api.connection import Connection
    from saros.api.session import Outcome, Session
    from saros_wire.read_point import ReadPoint

__all__ = ["Cursor", "Description", "Row"]


class Cursor(CursorState["Outcome"]):
    """See the module. One thread at a time; `cancel` from any."""

    def __init__(self, connection: Connection, session: Session, *, epoch: bool, timeout: float | None) -> None:
        super().__init__(connection.owner, epoch=epoch, timeout=timeout)
        self.connection = connection
        self._session = session
        self._rows: Iterator[Row] | None = None

    # ------------------------------------------------------------------ executing

    def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Self:
        """Run one statement; `parameters` are bound to its `?`s as values, never as text.

        `at`: the moment that a SELECT sees (`Connection.hold`).

        Raises the PEP 249 error for the status code (docs/errors.md).
        """
        self._check_statement(statement, parameters)
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
                error.add_note(failed_row(number))
                raise
            self._count_before = count
            count = self.rowcount
        return self

    def prepare(self, statement: str) -> Prepared:
        """A statement that is executed again and again; what is wrong with it shows when it is."""
        self._check_prepared(statement)
        return Prepared(self, statement)

    def cancel(self) -> None:
        """Stop the running statement; its fetch raises OperationalError. Any thread.

        One that is still being executed is stopped when `execute` returns.
        """
        self._cancelled = True
        outcome = self._outcome
        if outcome is not None:
            outcome.close()

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
        try:
            for batch in self._batches(outcome):
                yield from self._rows_of(batch)
        except KeyboardInterrupt:
            self._finish()  # rows of the batch are lost: none may follow them
            raise

    def _batches_left(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        rest = self._rest_of_batch()
        if rest is not None:
            yield rest
        yield from self._batches(outcome)

    def _batches(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                with translated_errors():
                    batch = outcome.next_batch()
            except KeyboardInterrupt:
                self._finish()  # a batch that was taken is lost: none may follow it
                raise
            if batch is None:
                return
            yield batch

    def _finish(self) -> None:
        outcome, self._outcome, self._rows, self._begun = self._outcome, None, None, None
        if outcome is not None:
            outcome.close()

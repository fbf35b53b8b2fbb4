"""Cursors: execute a statement, fetch its result, by rows or by columns.

Rows exist only here: results arrive as Arrow record batches and are turned into Python tuples batch by batch as they
are fetched. `fetch_arrow`, `fetch_pandas` and the like take all that is left; `fetch_batches` and the Arrow stream do
so batch by batch. The first row left is the one after the last row that was fetched, even within a batch.

A notebook's preview reads ahead; its batches are kept for the calls that fetch. An error that ends the result is kept,
too: every further fetch raises it, since rows are missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from saros.api.cursor_state import CursorState, Description, Row, failed_row
from saros.api.prepared import Prepared
from saros.base.fork_guard import ForkGuard
from saros.base.frames import pandas_frame, polars_frame
from saros.base.short_names import renamed
from saros.errors import Error, translated_errors

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from saros.api.connection import Connection
    from saros.api.session import Outcome, Session
    from saros_wire.read_point import ReadPoint

__all__ = ["Cursor", "Description", "Row"]


class Cursor(CursorState["Outcome"]):
    """Executes statements and fetches their results. One thread at a time; `cancel` from any."""

    def __init__(
        self, connection: Connection, session: Session, owner: ForkGuard, *, epoch: bool, timeout: float | None
    ) -> None:
        super().__init__(owner, epoch=epoch, timeout=timeout)
        self.connection = connection
        self._session = session
        self._rows: Iterator[Row] | None = None
        #: Batches that a preview has read ahead.
        self._peeked: deque[pa.RecordBatch] = deque()
        #: The error that ended the result.
        self._failed: Error | None = None

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
        """A statement that is executed several times; its errors are raised when it is executed."""
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

    # short_names: name columns by the last node of their paths, such as temperature, or avg(temperature); in columns
    # that would get the same name, by as many nodes as tell them apart

    def fetch_batches(self, *, short_names: bool = False) -> Iterator[pa.RecordBatch]:
        """The Arrow record batches that are left, as they come."""
        return self.fetch_stream(short_names=short_names)[1]

    def fetch_stream(self, *, short_names: bool = False) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The result's Arrow schema, and its batches as they come."""
        outcome = self._result()
        batches = self._batches_left(outcome)
        return renamed(outcome.schema, batches) if short_names else (outcome.schema, batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give all that is left to another library, as a stream of Arrow batches (the PyCapsule interface).

        So `polars.DataFrame(cursor)` and `duckdb.sql("from cursor")` take a cursor, once. `requested_schema`: cast to
        this schema, if the columns have these names.
        """
        import pyarrow as pa

        schema, batches = self.fetch_stream()
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Give another library the schema of the result."""
        return self._result().schema.__arrow_c_schema__()

    def fetch_arrow(self, *, short_names: bool = False) -> pa.Table:
        """All that is left as one Arrow table; the Time column is a timestamp in the session's zone."""
        import pyarrow as pa

        schema, batches = self.fetch_stream(short_names=short_names)
        return pa.Table.from_batches(list(batches), schema=schema)

    def fetch_pandas(self, *, short_names: bool = False, time_index: bool = False) -> pd.DataFrame:
        """All that is left as a DataFrame (needs pandas). `time_index`: with the column Time as its index.

        Raises InterfaceError if there is no column Time.
        """
        self._check_frame("pandas", time_index=time_index)
        return pandas_frame(self.fetch_arrow(short_names=short_names), time_index=time_index)

    def fetch_polars(self, *, short_names: bool = False) -> pl.DataFrame:
        """All that is left as a DataFrame of Polars (needs polars)."""
        self._check_frame("polars")
        return polars_frame(self.fetch_arrow(short_names=short_names))

    def fetch_numpy(self, *, short_names: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """All that is left as arrays by column name; time as int64 in the database's unit.

        A column with nulls is a masked array (numpy.ma); text is an object array.
        """
        from saros.base.columns import numpy_columns

        return numpy_columns(self.fetch_arrow(short_names=short_names))

    # ------------------------------------------------------------------ notebooks

    def _repr_html_(self) -> str:
        """Return the first rows that are left as an HTML table; the calls that fetch find them, too."""
        outcome = self._outcome
        if self._closed or outcome is None or outcome.names is None:
            return f"<p>{escape(repr(self))}</p>"
        from saros.base.preview import ROWS_MAX, html_table

        self._check_open()
        self._peek(outcome, ROWS_MAX + 1)
        names, types = outcome.names, outcome.type_names
        return html_table(self._peeked, names, types, epoch=self._epoch, failed=self._failed)

    def _peek(self, outcome: Outcome, rows: int) -> None:
        """Read ahead until `rows` rows are there, or the end, or an error."""
        rest = self._rest_of_batch()
        if rest is not None:
            self._peeked.appendleft(rest)
        with suppress(Error):  # kept for the next fetch
            while sum(batch.num_rows for batch in self._peeked) < rows:
                batch = self._next_batch(outcome)
                if batch is None:
                    return
                self._peeked.append(batch)

    # ------------------------------------------------------------------ the rest of PEP 249

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Nothing: values say what they are."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: values of any size are fetched whole."""

    def close(self) -> None:
        """Close; a query that still runs is cancelled. Idempotent."""
        self._closed = True
        if self._owner.is_own_process:
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
        except Error as error:
            self._rows, self._failed = None, error
            self._peeked.clear()
            raise

    def _batches_left(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        rest = self._rest_of_batch()
        if rest is not None:
            yield rest
        yield from self._batches(outcome)

    def _batches(self, outcome: Outcome) -> Iterator[pa.RecordBatch]:
        while (batch := self._peeked.popleft() if self._peeked else self._next_batch(outcome)) is not None:
            yield batch

    def _next_batch(self, outcome: Outcome) -> pa.RecordBatch | None:
        if self._failed is not None:
            raise self._failed
        try:
            with translated_errors():
                return outcome.next_batch()
        except KeyboardInterrupt:
            self._finish()  # a batch that was taken is lost: none may follow it
            raise
        except Error as error:
            self._failed = error
            raise

    def _finish(self) -> None:
        outcome, self._outcome, self._rows, self._begun = self._outcome, None, None, None
        self._peeked.clear()
        self._failed = None
        if outcome is not None:
            outcome.close()

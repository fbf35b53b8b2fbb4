"""Cursors: execute a statement, and fetch its result by rows or by columns.

Results arrive as Arrow record batches, and become Python tuples batch by batch as they are fetched. `fetch_arrow`,
`fetch_pandas` and similar methods return all remaining rows. `fetch_batches` and the Arrow stream return them batch by
batch. The remaining rows begin after the last row that was fetched, even if this row is in the middle of a batch.

The preview of a notebook reads ahead, and keeps the batches for the methods that fetch. An error that ends the result
is kept as well: every later fetch raises it, because rows are missing.
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
    """A cursor: executes statements, and fetches their results.

    Made by `Connection.cursor`. Iterating over a cursor yields the remaining rows. Only one thread may use a cursor at
    a time, except that any thread may call `cancel`.
    """

    def __init__(
        self, connection: Connection, session: Session, owner: ForkGuard, *, epoch: bool, timeout: float | None
    ) -> None:
        super().__init__(owner, epoch=epoch, timeout=timeout)
        self.connection = connection
        self._session = session
        self._rows: Iterator[Row] | None = None
        #: Batches that a preview has read but that were not fetched yet.
        self._peeked: deque[pa.RecordBatch] = deque()
        #: The error that ended the result.
        self._failed: Error | None = None

    # ------------------------------------------------------------------ executing

    def execute(self, statement: str, parameters: Sequence[object] = (), *, at: ReadPoint | None = None) -> Self:
        """Execute one statement, and return this cursor.

            cursor.execute("select avg(temperature) from root.plant.** where time >= ?", [start])

        parameters  one value for each `?` of the statement, sent as values and never as text
        at          a read point, whose snapshot a SELECT reads (`Connection.hold`)

        The results of the previous statement are dropped. Raises ProgrammingError for wrong arguments, and otherwise
        the exception of the status code (docs/errors.md).
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
        """Execute a statement once for each row of parameters, and return this cursor.

        If a row fails, the rows after it are not executed, and a note on the exception has the number of the row. To
        write many rows, use `Connection.insert` or `Connection.bulk_writer`, which are much faster.
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
        """Return a statement to execute several times with different parameters.

        Raises InterfaceError for an empty text. Errors in the statement are raised when it is executed.
        """
        self._check_prepared(statement)
        return Prepared(self, statement)

    def cancel(self) -> None:
        """Cancel the running query. May be called from any thread.

        A fetch that waits raises OperationalError. If `execute` is still running, the query is cancelled when `execute`
        returns.
        """
        self._cancelled = True
        outcome = self._outcome
        if outcome is not None:
            outcome.close()

    # ------------------------------------------------------------------ rows

    def fetchone(self) -> Row | None:
        """Return the next row as a tuple, or None after the last row."""
        return next(self._row_iterator(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next rows: at most `size`, or `arraysize` if it is None."""
        wanted = self.arraysize if size is None else size
        return list(islice(self._row_iterator(), max(wanted, 0)))

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        return list(self._row_iterator())

    def __iter__(self) -> Iterator[Row]:
        return self._row_iterator()

    # ------------------------------------------------------------------ columns

    # If `short_names` is true, columns are named by the last node of their paths, such as temperature or
    # avg(temperature). Names that would be equal keep as many nodes as necessary to differ.

    def fetch_batches(self, *, short_names: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows as Arrow record batches, as they arrive.

        short_names  name columns by the last node of their paths: temperature, avg(temperature)
        """
        return self.fetch_stream(short_names=short_names)[1]

    def fetch_stream(self, *, short_names: bool = False) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the Arrow schema of the result, and the remaining batches as they arrive."""
        outcome = self._result()
        batches = self._batches_left(outcome)
        return renamed(outcome.schema, batches) if short_names else (outcome.schema, batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the remaining rows as a stream of Arrow batches (Arrow's PyCapsule interface).

        With this method, `polars.DataFrame(cursor)` and `duckdb.sql("from cursor")` can read a cursor once.

        requested_schema  a capsule with the schema to cast to; the columns must have the same names
        """
        import pyarrow as pa

        schema, batches = self.fetch_stream()
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the Arrow schema of the result (Arrow's PyCapsule interface)."""
        return self._result().schema.__arrow_c_schema__()

    def fetch_arrow(self, *, short_names: bool = False) -> pa.Table:
        """Return all remaining rows as one Arrow table. The column Time is a timestamp in the session's time zone."""
        import pyarrow as pa

        schema, batches = self.fetch_stream(short_names=short_names)
        return pa.Table.from_batches(list(batches), schema=schema)

    def fetch_pandas(self, *, short_names: bool = False, time_index: bool = False) -> pd.DataFrame:
        """Return all remaining rows as a pandas DataFrame. With `time_index`, the column Time is its index.

        Raises InterfaceError if pandas is not installed, or if `time_index` is set and there is no column Time.
        """
        self._check_frame("pandas", time_index=time_index)
        return pandas_frame(self.fetch_arrow(short_names=short_names), time_index=time_index)

    def fetch_polars(self, *, short_names: bool = False) -> pl.DataFrame:
        """Return all remaining rows as a Polars DataFrame. Raises InterfaceError if Polars is not installed."""
        self._check_frame("polars")
        return polars_frame(self.fetch_arrow(short_names=short_names))

    def fetch_numpy(self, *, short_names: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """Return all remaining rows as a dictionary of arrays of shape (rows,), keyed by column name.

        Timestamps are int64 in the database's time precision. A numeric or boolean column with nulls is a masked array
        (numpy.ma); texts are an object array.
        """
        from saros.base.columns import numpy_columns

        return numpy_columns(self.fetch_arrow(short_names=short_names))

    # ------------------------------------------------------------------ notebooks

    def _repr_html_(self) -> str:
        """Return the first remaining rows as an HTML table. The rows can still be fetched."""
        outcome = self._outcome
        if self._closed or outcome is None or outcome.names is None:
            return f"<p>{escape(repr(self))}</p>"
        from saros.base.preview import ROWS_MAX, html_table

        self._check_open()
        self._peek(outcome, ROWS_MAX + 1)
        names, types = outcome.names, outcome.type_names
        return html_table(self._peeked, names, types, epoch=self._epoch, failed=self._failed)

    def _peek(self, outcome: Outcome, rows: int) -> None:
        """Read ahead until at least `rows` rows are buffered, or the result ends or fails."""
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
        """Do nothing: the types of values are known. PEP 249 requires the method."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: values of any size are fetched completely. PEP 249 requires the method."""

    def close(self) -> None:
        """Close the cursor, and cancel its query if it is still running. Idempotent."""
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
            self._finish()  # some rows of this batch are lost, so no later rows may be returned
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
            self._finish()  # a received batch is lost, so no later batch may be returned
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

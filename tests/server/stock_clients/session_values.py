"""Print the values that a Session reads for statements from standard input, one statement per line.

usage: session_values.py PORT

If a statement is refused, its output is the error code. Otherwise, it is the columns with their types, the objects of
each record, and the types and rows of the data frame, all as Python writes them. Rows without times are sorted.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator

import pandas as pd
from iotdb.Session import Session
from iotdb.utils.exception import StatementExecutionException
from iotdb.utils.SessionDataSet import SessionDataSet

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

#: The first words of the statements that return rows.
_QUERIES = ("select", "show", "count", "list", "explain")
_FETCH_ROWS = 10_000


def answer(session: Session, statement: str) -> list[str]:
    """Run a statement, and return lines that describe its answer."""
    if not statement.startswith(_QUERIES):
        session.execute_non_query_statement(statement)
        return ["done"]
    with session.execute_query_statement(statement) as result:
        names, types = result.get_column_names(), result.get_column_types()
        timed = not result.iotdb_rpc_data_set.ignore_timestamp
        columns = ", ".join(f"{name} {kind.name}" for name, kind in zip(names, types, strict=True))
        rows = list(records(result, timed))
    return [columns, *ordered(rows, timed), *frame_of(session, statement, timed)]


def frame_of(session: Session, statement: str, timed: bool) -> list[str]:
    with session.execute_query_statement(statement) as result:
        try:
            frame = result.todf()
        except TypeError as error:
            # The client takes a column of one repeated value for bytes.
            return [f"frame failed {type(error).__name__}"]
    return [f"frame {' '.join(map(str, frame.dtypes))}", *ordered(cells(frame), timed)]


def records(result: SessionDataSet, timed: bool) -> Iterator[str]:
    while result.has_next():
        record = result.next()
        values = [field.get_object_value(field.get_data_type()) for field in record.get_fields()]
        yield ", ".join(map(repr, [record.get_timestamp(), *values] if timed else values))


def cells(frame: pd.DataFrame) -> list[str]:
    return [", ".join(map(repr, row)) for row in zip(*(frame.iloc[:, at] for at in range(frame.shape[1])), strict=True)]


def ordered(rows: list[str], timed: bool) -> list[str]:
    return rows if timed else sorted(rows)


def main() -> None:
    session = Session("127.0.0.1", sys.argv[1], "root", "root", fetch_size=_FETCH_ROWS, zone_id="Asia/Tokyo")
    session.open()
    for line in sys.stdin:
        statement = line.strip()
        print(f"> {statement}")
        try:
            print(*answer(session, statement), sep="\n", flush=True)
        except StatementExecutionException as error:
            print("refused", str(error).partition(":")[0], flush=True)
        except Exception as error:  # noqa: BLE001 (some answers make the client fail)
            print("failed", type(error).__name__, flush=True)
    session.close()


main()

"""Statements and queries: the calls that execute SQL, and those that fetch and close results.

A statement without rows is answered by a status. A query is answered by the description of its columns, the first page,
and a number with which the client fetches other pages and closes the result. Some calls describe a query by its parts
instead of SQL. They are translated to SQL here, and the names in these calls are parsed and quoted
(`saros_server.api.quoting`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from saros_engine.writes.batches import failure_of_others
from saros_server.api import operations
from saros_server.api.client_sessions import NoSession
from saros_server.api.iotdb_codes import NO_SUCH_QUERY, SEMANTIC, UNSUPPORTED
from saros_server.api.quoting import below_root, listed, quoted_name, series_below_root, whole_number
from saros_server.thrift.results import OpenResult, Page, ResultShape
from saros_server.thrift.sessions import NotLoggedIn, ThriftSession, WrongCall
from saros_server.thrift.status_codes import DONE, failure, merged
from saros_server.thrift.structs import (
    AggregationQuery,
    CancelOperation,
    CloseOperation,
    DataSet,
    ExecuteAnswer,
    ExecuteBatch,
    ExecuteStatement,
    FastLastOfDevice,
    FastLastOfPrefix,
    FetchAnswer,
    FetchResults,
    LastDataQuery,
    RawDataQuery,
    Status,
)
from saros_server.thrift.tsblock import encode_block, encode_data_set

_BATCH_MAX = 100_000
#: The function for each number in TAggregationType; all have one series as argument.
_AGGREGATIONS = (
    *("COUNT", "AVG", "SUM", "FIRST_VALUE", "LAST_VALUE", "MAX_TIME", "MIN_TIME", "MAX_VALUE", "MIN_VALUE", "EXTREME"),
    *("", "TIME_DURATION", "MODE", "", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"),
)

_Part = TypeVar("_Part")

_query_numbers = itertools.count(1)


# ---------------------------------------------------------------------------------------------- statements


class Rows(msgspec.Struct, frozen=True):
    """The first page of a query's result."""

    #: The number by which the other pages are fetched.
    number: int
    shape: ResultShape
    page: Page


def in_blocks(query: Callable[[ThriftSession, Any], Rows | None]) -> Callable[[ThriftSession, Any], ExecuteAnswer]:
    """Return the call that answers a query with TsBlocks."""

    def call(session: ThriftSession, request: object) -> ExecuteAnswer:
        rows = query(session, request)
        return ExecuteAnswer(DONE) if rows is None else replace(_described(rows), blocks=_blocks(rows.shape, rows.page))

    return call


def in_data_set(query: Callable[[ThriftSession, Any], Rows | None]) -> Callable[[ThriftSession, Any], ExecuteAnswer]:
    """Return the call that answers a query in the old format, a data set."""

    def call(session: ThriftSession, request: object) -> ExecuteAnswer:
        rows = query(session, request)
        return (
            ExecuteAnswer(DONE)
            if rows is None
            else replace(_described(rows), data_set=_data_set(rows.shape, rows.page))
        )

    return call


def _described(rows: Rows) -> ExecuteAnswer:
    """Return the answer to a query without the rows, which the caller adds."""
    shape = rows.shape
    return ExecuteAnswer(
        DONE,
        rows.number,
        shape.names,
        not shape.is_timed,
        shape.type_names,
        column_places=shape.name_places,
        more=rows.page.more,
        table_model=False,
        column_blocks=shape.places,
    )


def _blocks(shape: ResultShape, page: Page) -> list[bytes]:
    return [encode_block(batch, shape.types, timed=shape.is_timed) for batch in page.batches]


def _data_set(shape: ResultShape, page: Page) -> DataSet:
    """Return a page in the old format, which has one column for each distinct name."""
    schema = shape.schema if shape.order is None else pa.schema([shape.schema.field(place) for place in shape.order])
    (batch,) = pa.Table.from_batches(page.batches, schema).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], schema)
    ]
    return encode_data_set(batch, shape.types[: len(shape.name_places)], timed=shape.is_timed)


def execute_statement(session: ThriftSession, request: ExecuteStatement) -> Rows | None:
    """Call `executeStatementV2` or `executeQueryStatementV2`; return None if the statement has no rows."""
    return _execute(session, request.statement, request.statement_id, request.fetch_size, request.timeout_ms)


def execute_update(session: ThriftSession, request: ExecuteStatement) -> ExecuteAnswer:
    """Call `executeUpdateStatement`, `executeUpdateStatementV2`: the answer has a status only."""
    _discard(session, request.statement, request.timeout_ms)
    return ExecuteAnswer(DONE)


def execute_batch(session: ThriftSession, request: ExecuteBatch) -> Status:
    """Call `executeBatchStatement`: statements after a failed one are executed as well."""
    if len(request.statements) > _BATCH_MAX:
        raise WrongCall(SEMANTIC, f"{len(request.statements)} statements in one batch: more than {_BATCH_MAX}")
    return each(request.statements, lambda statement: _discard(session, statement))


def each(parts: Sequence[_Part], run: Callable[[_Part], Status]) -> Status:
    """Run the parts of a call one after another; return the status of the call, merged from the parts' statuses."""
    return merged(statuses_of(parts, run))


def statuses_of(parts: Sequence[_Part], run: Callable[[_Part], Status]) -> list[Status]:
    """Run the parts of a call one after another; return the status of each. Raises NoSession, NotLoggedIn.

    After a failure that would also delay and fail every remaining part (`failure_of_others`), the remaining parts are
    not run.
    """
    statuses: list[Status] = []
    for part in parts:
        try:
            statuses.append(run(part))
        except (NoSession, NotLoggedIn):
            raise
        except Exception as error:  # noqa: BLE001 (the top of a part)
            statuses.append(failure(error))
            others = failure_of_others(error)
            if others is not None:
                return statuses + [failure(others)] * (len(parts) - len(statuses))
    return statuses


def _execute(
    session: ThriftSession, text: str, statement: int | None, rows: int | None, timeout_ms: int | None
) -> Rows | None:
    """Execute a statement; if it has rows, return the first page."""
    owner = session.check_statement(statement)
    answer = session.execute(text, timeout_ms)
    if not answer.head.schema:
        return None
    stream = session.call(operations.FETCH, answer.cursor) if answer.cursor else None
    result = OpenResult(answer, stream, owner)
    number = next(_query_numbers)
    session.results.add(number, result)
    return Rows(number, result.shape, _page(session, number, result, rows or 0))


def _page(session: ThriftSession, number: int, result: OpenResult, rows: int) -> Page:
    """Return the next page of a result, which is closed after its last page and after an error."""
    try:
        page = result.page(rows, session.cancel)
    except BaseException:
        session.results.discard(number)
        raise
    if not page.more:
        result.close()
    return page


def _discard(session: ThriftSession, text: str, timeout_ms: int | None = None) -> Status:
    """Execute a statement, and discard its rows."""
    answer = session.execute(text, timeout_ms)
    if answer.cursor:
        session.call(operations.DISCARD, answer.cursor)
    return DONE


# ---------------------------------------------------------------------------------------------- results


def fetch_blocks(session: ThriftSession, request: FetchResults) -> FetchAnswer:
    """Call `fetchResultsV2`."""
    shape, page = _fetch(session, request)
    return FetchAnswer(DONE, page.rows > 0, aligned=True, blocks=_blocks(shape, page), more=page.more)


def fetch_data_set(session: ThriftSession, request: FetchResults) -> FetchAnswer:
    """Call `fetchResults`: older clients fetch until a page is empty."""
    shape, page = _fetch(session, request)
    return FetchAnswer(DONE, page.rows > 0, aligned=True, data_set=_data_set(shape, page), more=page.more)


def _fetch(session: ThriftSession, request: FetchResults) -> tuple[ResultShape, Page]:
    session.renew()
    result = session.results.find(request.query_id)
    if result is None:
        message = f"query {request.query_id} is not open on this connection: it was closed, or belongs to another"
        raise WrongCall(NO_SUCH_QUERY, message)
    return result.shape, _page(session, request.query_id, result, request.fetch_size)


def cancel_operation(session: ThriftSession, request: CancelOperation) -> Status:
    """Call `cancelOperation`. This call cannot interrupt a fetch, since a connection has one call at a time."""
    session.results.discard(request.query_id)
    return DONE


def close_operation(session: ThriftSession, request: CloseOperation) -> Status:
    """Call `closeOperation`: close a result or, without its number, a statement. Result -1 does not exist."""
    if request.query_id is not None:
        session.results.discard(request.query_id)
        return DONE
    for number in (request.statement_id, request.session_id):  # some clients swap them
        if number is not None and number in session.statements:
            session.results.close_of(number)
            session.statements.discard(number)
    return DONE


# ---------------------------------------------------------------------------------------------- queries by their parts


def raw_data_query(session: ThriftSession, request: RawDataQuery) -> Rows | None:
    """Call `executeRawDataQueryV2`: return the rows from `start` to `end`, exclusive."""
    paths = listed(series_below_root(path) for path in request.paths)
    text = _select(paths, after=f"where {_between(request.start, request.end)}")
    return _execute(session, text, request.statement_id, request.fetch_size, request.timeout_ms)


def last_data_query(session: ThriftSession, request: LastDataQuery) -> Rows | None:
    """Call `executeLastDataQueryV2`: return the last points at or after `time`."""
    paths = listed(series_below_root(path) for path in request.paths)
    text = _select("last", paths, after=f"where time >= {whole_number(request.time)}")
    return _execute(session, text, request.statement_id, request.fetch_size, request.timeout_ms)


def fast_last_of_device(session: ThriftSession, request: FastLastOfDevice) -> Rows | None:
    """Call `executeFastLastDataQueryForOneDeviceV2`."""
    device = below_root(request.device)
    paths = listed(f"{device}.{quoted_name(name)}" for name in request.measurements)
    text = _select("last", paths)
    return _execute(session, text, request.statement_id, request.fetch_size, request.timeout_ms)


def fast_last_of_prefix(session: ThriftSession, request: FastLastOfPrefix) -> Rows | None:
    """Call `executeFastLastDataQueryForOnePrefixPath`: return the last points of all series below a path."""
    nodes = request.prefix if len(request.prefix) > 1 else request.prefix[0].split(".") if request.prefix else []
    prefix = below_root(".".join(quoted_name(node) for node in nodes))
    text = _select("last", f"{prefix}.**")
    return _execute(session, text, request.statement_id, request.fetch_size, request.timeout_ms)


def aggregation_query(session: ThriftSession, request: AggregationQuery) -> Rows | None:
    """Call `executeAggregationQueryV2`: aggregate each path over all times, over a range, or over its windows."""
    if len(request.paths) != len(request.aggregations):
        message = f"{len(request.paths)} paths and {len(request.aggregations)} aggregations: give one for each path"
        raise WrongCall(SEMANTIC, message)
    pairs = zip(request.aggregations, request.paths, strict=True)
    columns = listed(f"{_function(number)}({series_below_root(path)})" for number, path in pairs)
    text = _select(columns, after=_range(request, session))
    return _execute(session, text, request.statement_id, request.fetch_size, request.timeout_ms)


def _select(*columns: str, after: str = "") -> str:
    """Return a query from root; `after` contains the clauses after FROM."""
    return " ".join(("select", *columns, "from root", after))


def _range(request: AggregationQuery, session: ThriftSession) -> str:
    if request.start is None or request.end is None:
        return ""
    if not request.interval:
        return f"where {_between(request.start, request.end)}"
    unit = session.api.node.configuration.time_unit
    windows = [request.interval, *([request.step] if request.step else [])]
    sizes = ", ".join(f"{whole_number(size)}{unit}" for size in windows)
    return f"group by ([{whole_number(request.start)}, {whole_number(request.end)}), {sizes})"


def _function(number: int) -> str:
    name = _AGGREGATIONS[number] if 0 <= number < len(_AGGREGATIONS) else ""
    if not name:
        raise WrongCall(UNSUPPORTED, f"aggregation {number} is not one of a single series: write the query in SQL")
    return name


def _between(start: int, end: int) -> str:
    return f"time >= {whole_number(start)} and time < {whole_number(end)}"

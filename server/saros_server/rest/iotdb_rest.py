"""IoTDB's REST interface, versions 1 and 2.

    GET  /ping                                  check that the node answers
    POST /rest/v2/query, nonQuery               execute a statement that returns rows, or one that returns none
    POST /rest/v2/insertTablet, insertRecords   insert rows: of one device, by column, or of several devices, by row

Version 1 differs from version 2 only in field names (`rowLimit`, `deviceId`). The response to an error has HTTP status
200, and IoTDB's code in the body, unless the HTTP service itself refuses the request. Times are integers in the
database's time precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from saros_grammar.cache import StatementCache
from saros_grammar.syntax import ast
from saros_server.api import operations
from saros_server.api.executions import Statement
from saros_server.api.iotdb_codes import IOTDB_CODES
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Response, error_response, json_response
from saros_server.http.routes import Description, Policy, Route, RouteFunction
from saros_server.http.session import HttpSession
from saros_server.influx import routes as influx
from saros_server.rest import fields, schemas
from saros_server.rest.json_inserts import Shape, records, tablet
from saros_server.rest.results import Result, execute, json_column

SUCCESS = {"code": 200, "message": "SUCCESS_STATUS"}
_NO_QUERY, _TOO_MANY_ROWS, _TOO_LARGE = 301, 411, 709
#: The default limit on the number of rows in a result, which is that of IoTDB, and the highest limit that a client may
#: set.
_ROWS, _ROWS_MAX = 10_000, 1_000_000
#: HTTP statuses of errors that are sent unchanged. The responses to all other errors have status 200, as in IoTDB.
_HTTP_STATUSES = frozenset({401, 405, 408, 413, 415})
_STATEMENTS_CACHED = 256
#: The limit on the size of a result, which is completely in memory in several forms: as Arrow, values, and JSON.
_RESULT_BYTES = 64 << 20


class Names(msgspec.Struct, frozen=True):
    """The names that the fields have in a version of the interface."""

    row_limit: str
    column_names: str
    data_types: str
    is_aligned: str
    device: str
    measurements_list: str
    data_types_list: str
    values_list: str


VERSIONS = {
    "v1": Names(
        *("rowLimit", "columnNames", "dataTypes", "isAligned", "deviceId"),
        *("measurementsList", "dataTypesList", "valuesList"),
    ),
    "v2": Names(
        *("row_limit", "column_names", "data_types", "is_aligned", "device"),
        *("measurements_list", "data_types_list", "values_list"),
    ),
}


def routes() -> list[Route]:
    """Return the routes."""
    rest = IoTDBRest()
    ping = Description("Check that the node responds.", "IoTDB REST", response={JSON: schemas.STATUS})
    found = [Route("GET", "/ping", Policy.PUBLIC, _ping, ping)]
    for version, names in VERSIONS.items():
        found += [
            _route(version, "query", rest.query, names, _query_fields(names), _result_of(names)),
            _route(version, "nonQuery", rest.non_query, names, {"sql": schemas.TEXT}),
            _route(version, "insertTablet", rest.insert_tablet, names, _tablet_fields(names)),
            _route(version, "insertRecords", rest.insert_records, names, _records_fields(names)),
        ]
    return found


def _query_fields(names: Names) -> dict[str, schemas.Schema]:
    return {"sql": schemas.TEXT, names.row_limit: schemas.INTEGER}


def _result_of(names: Names) -> schemas.Schema:
    return schemas.result(names.column_names, names.data_types)


def _tablet_fields(names: Names) -> dict[str, schemas.Schema]:
    texts, columns = schemas.array(schemas.TEXT), schemas.array(schemas.array(schemas.ANYTHING))
    arrays = {"timestamps": schemas.array(schemas.INTEGER), "measurements": texts, names.data_types: texts}
    return {names.device: schemas.TEXT, names.is_aligned: schemas.BOOLEAN, **arrays, "values": columns}


def _records_fields(names: Names) -> dict[str, schemas.Schema]:
    texts, rows = schemas.array(schemas.TEXT), schemas.array(schemas.array(schemas.ANYTHING))
    arrays = {"timestamps": schemas.array(schemas.INTEGER), "devices": texts}
    lists = dict.fromkeys((names.measurements_list, names.data_types_list), schemas.array(texts))
    return {names.is_aligned: schemas.BOOLEAN, **arrays, **lists, names.values_list: rows}


def _route(
    version: str,
    call: str,
    function: Any,
    names: Names,
    properties: Mapping[str, schemas.Schema],
    response: schemas.Schema = schemas.STATUS,
) -> Route:
    required = tuple(name for name in properties if name != names.row_limit)
    request = {JSON: schemas.record(properties, required)}
    description = Description(f"IoTDB's {call}.", "IoTDB REST", request=request, response={JSON: response})
    run: RouteFunction = partial(function, names)
    return Route("POST", f"/rest/{version}/{call}", Policy.AUTHENTICATED, run, description, failure=failure)


def failure(status: int, code: int, message: str) -> Response:
    """Return the response of a failed call."""
    if status in _HTTP_STATUSES:
        return error_response(status, code, message)
    return error_response(200, IOTDB_CODES.get(code, code), message)


def _ping(request: HttpRequest, _: HttpSession) -> Response:
    return influx.ping() if influx.is_influx(request) else json_response(SUCCESS)


class IoTDBRest:
    """The functions of the routes. Thread-safe."""

    def __init__(self) -> None:
        self._statements = StatementCache(_STATEMENTS_CACHED)

    def query(self, names: Names, request: HttpRequest, session: HttpSession) -> Response:
        """Execute a statement that returns rows."""
        body = request.object()
        text = fields.text(body, "sql")
        limit = fields.integer(body, names.row_limit, _ROWS)
        if not 0 < limit <= _ROWS_MAX:
            raise HttpError(400, f"{names.row_limit} is {limit}: expected a number from 1 to {_ROWS_MAX}")
        _, result = execute(session, Statement(text, read_only=True))
        assert result is not None, text  # every statement that only reads returns rows
        table = collect(result, limit)
        return json_response(self._result(names, text, result, table))

    def non_query(self, _names: Names, request: HttpRequest, session: HttpSession) -> Response:
        """Execute a statement that returns no rows."""
        text = fields.text(request.object(), "sql")
        _, result = execute(session, Statement(text))
        if result is not None:
            result.close()
            raise HttpError(400, "the statement has rows: send it to query", _NO_QUERY)
        return json_response(SUCCESS)

    def insert_tablet(self, names: Names, request: HttpRequest, session: HttpSession) -> Response:
        """Insert rows of one device, whose values the request lists column by column."""
        body = request.object()
        times = fields.array_of(body, "timestamps", int)
        measurements = fields.array_of(body, "measurements", str)
        types = fields.array_of(body, names.data_types, str, len(measurements))
        columns = fields.array_of(body, "values", list, len(measurements))
        shape = Shape(tuple(measurements), tuple(types))
        device, aligned = fields.text(body, names.device), fields.flag(body, names.is_aligned)
        session.call(operations.INSERT, tablet(device, aligned, shape, times, columns))
        return json_response(SUCCESS)

    def insert_records(self, names: Names, request: HttpRequest, session: HttpSession) -> Response:
        """Insert rows of several devices, which the request lists row by row."""
        body = request.object()
        devices = fields.array_of(body, "devices", str)
        count = len(devices)
        times = fields.array_of(body, "timestamps", int, count)
        measurements = fields.array_of(body, names.measurements_list, list, count)
        types = fields.array_of(body, names.data_types_list, list, count)
        rows = fields.array_of(body, names.values_list, list, count)
        shapes = [_shape(place, *parts) for place, parts in enumerate(zip(measurements, types, rows, strict=True))]
        aligned = fields.flag(body, names.is_aligned)
        errors = []
        for inserts in records(devices, aligned, shapes, times, rows):
            errors += [found for found in session.call(operations.INSERT_MANY, inserts) if isinstance(found, Exception)]
        if errors:
            raise errors[0]
        return json_response(SUCCESS)

    def _result(self, names: Names, text: str, result: Result, table: pa.Table) -> dict[str, Any]:
        """Return a result in IoTDB's form. A SELECT has expressions, any other statement has column names instead."""
        statement = self._statements.get(text).statement
        is_selected = isinstance(statement, ast.Select) and not statement.last
        first = 1 if result.is_timed else 0
        titles = table.schema.names[first:]
        return {
            "expressions": titles if is_selected else None,
            names.column_names: None if is_selected else titles,
            names.data_types: list(result.head.type_names[first:]),
            "timestamps": json_column(table.column(0)) if result.is_timed else None,
            "values": [json_column(column) for column in table.columns[first:]],
        }


def _shape(place: int, measurements: list[Any], types: list[Any], row: list[Any]) -> Shape:
    if not len(measurements) == len(types) == len(row):
        raise HttpError(
            400,
            f"record {place} has {len(measurements)} measurements, {len(types)} types and {len(row)} values",
        )
    if not all(isinstance(word, str) for word in (*measurements, *types)):
        raise HttpError(400, f"record {place} has a measurement or a type that is not a text")
    return Shape(tuple(measurements), tuple(types))


def collect(result: Result, limit: int) -> pa.Table:
    """Return all rows of a result. Raises HttpError with code 411 (more rows than `limit`) or 709 (too many bytes)."""
    batches, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in result.batches():
        batches.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if size > _RESULT_BYTES:
            result.close()
            raise HttpError(
                400, f"the result has more than {_RESULT_BYTES} bytes: narrow it, or use /query", _TOO_LARGE
            )
        if rows > limit:
            result.close()
            raise HttpError(
                400, f"Dataset row size exceeded the given max row size ({limit}): narrow the query", _TOO_MANY_ROWS
            )
    return pa.Table.from_batches(batches, result.schema)

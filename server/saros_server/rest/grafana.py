"""The interface for Grafana's data source for IoTDB, versions 1 and 2.

    GET  /grafana/v1/login              check user and password
    POST /grafana/v1/query/expression   SELECT expression FROM prefixPath WHERE time ... AND (condition) control
    POST /grafana/v1/variable           execute a statement; return the values of its first column as texts
    POST /grafana/v1/node               return the names of the nodes below a path

In version 2, field names differ (`prefix_path`). Times are in milliseconds. The editors of a dashboard write the parts
of a SELECT statement. It runs with the privileges of the data source's user, and can only read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from saros_server.api.executions import Statement
from saros_server.api.quoting import quoted_name
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Response, json_response
from saros_server.http.routes import Description, Policy, Route, RouteFunction
from saros_server.http.session import HttpSession
from saros_server.rest import fields, schemas
from saros_server.rest.iotdb_rest import SUCCESS, collect, failure
from saros_server.rest.results import execute, json_column
from saros_storage.base.types import TIME_UNITS, TimeUnit

#: The maximum number of rows that a panel may show, which is far more than it has pixels.
_ROWS_MAX = 1_000_000
#: The maximum number of values that a variable may have, and of child nodes that a path may have.
_NAMES_MAX = 10_000
_TAG = "Grafana"


class Names(msgspec.Struct, frozen=True):
    """The names that the fields have in a version of the interface."""

    prefix_path: str
    start_time: str
    end_time: str
    column_names: str


VERSIONS = {
    "v1": Names("prefixPath", "startTime", "endTime", "columnNames"),
    "v2": Names("prefix_path", "start_time", "end_time", "column_names"),
}


def routes() -> list[Route]:
    """Return the routes."""
    found = []
    for version, names in VERSIONS.items():
        prefix = f"/grafana/{version}"
        login = Description("Check user and password.", _TAG, response={JSON: schemas.STATUS})
        found.append(Route("GET", f"{prefix}/login", Policy.AUTHENTICATED, _login, login, failure=failure))
        texts = schemas.array(schemas.TEXT)
        panel = {"expression": texts, names.prefix_path: texts}
        panel |= dict.fromkeys((names.start_time, names.end_time), schemas.INTEGER)
        panel |= dict.fromkeys(("condition", "control"), schemas.TEXT)
        result = schemas.result(names.column_names, "data_types")
        sql = schemas.record({"sql": schemas.TEXT})
        found += [
            _route(f"{prefix}/query/expression", partial(_query, names), schemas.record(panel), result, "Query."),
            _route(f"{prefix}/variable", _variable, sql, texts, "List the values of a variable."),
            _route(f"{prefix}/node", _node, texts, texts, "List the nodes below a path."),
        ]
    return found


def _route(
    path: str, function: RouteFunction, request: schemas.Schema, response: schemas.Schema, summary: str
) -> Route:
    description = Description(summary, _TAG, request={JSON: request}, response={JSON: response})
    return Route("POST", path, Policy.AUTHENTICATED, function, description, failure=failure)


def _login(_: HttpRequest, __: HttpSession) -> Response:
    return json_response(SUCCESS)


def _query(names: Names, request: HttpRequest, session: HttpSession) -> Response:
    body = request.object()
    unit = TIME_UNITS[session.time_unit]
    table, is_timed = _rows(session, _select(names, body, unit), _ROWS_MAX)
    first = 1 if is_timed else 0
    values = [_panel_column(column) for column in table.columns[first:]]
    return json_response(
        {
            "expressions": table.schema.names[first:],
            "timestamps": _milliseconds(table.column(0), unit) if is_timed else None,
            "values": values,
            names.column_names: None,
            "code": None,
            "message": None,
        }
    )


def _select(names: Names, body: Mapping[str, Any], unit: TimeUnit) -> str:
    """Return the SELECT statement for a panel. Raises HttpError 400."""
    expressions = fields.array_of(body, "expression", str)
    prefixes = fields.array_of(body, names.prefix_path, str)
    if not expressions or not prefixes:
        raise HttpError(400, f"expression and {names.prefix_path} need an element each")
    per_ms = unit.value // TimeUnit.MILLISECOND.value
    start = fields.integer(body, names.start_time) * per_ms
    end = (fields.integer(body, names.end_time) + 1) * per_ms
    where = f"time >= {start} and time < {end}"
    condition = fields.text(body, "condition", "").strip()
    if condition:
        where += f" and ({condition})"
    control = fields.text(body, "control", "")
    what = f"{', '.join(expressions)} from {', '.join(prefixes)}"
    return f"select {what} where {where} {control}"


def _panel_column(column: pa.ChunkedArray) -> Any:
    """Return the values of a column in the form that the plugin expects.

    A null in a column of texts becomes an empty text, since the plugin does not accept nulls there.
    """
    found = json_column(column)
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return ["" if value is None else value for value in found]
    return found


def _milliseconds(times: pa.ChunkedArray, unit: TimeUnit) -> Any:
    return json_column(times) // (unit.value // TimeUnit.MILLISECOND.value)


def _variable(request: HttpRequest, session: HttpSession) -> Response:
    text = fields.text(request.object(), "sql")
    table, _ = _rows(session, text, _NAMES_MAX)
    return json_response([str(value) for value in _listed(table)])


def _node(request: HttpRequest, session: HttpSession) -> Response:
    nodes = request.json()
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise HttpError(400, 'the body must be an array of node names, such as ["root", "plant"]')
    path = ".".join(["root", *(quoted_name(node) for node in nodes[1:])])
    table, _ = _rows(session, f"show child nodes {path}", _NAMES_MAX)
    return json_response(_listed(table))


def _rows(session: HttpSession, text: str, rows_max: int) -> tuple[pa.Table, bool]:
    _, result = execute(session, Statement(text, read_only=True))
    assert result is not None, text  # every statement that only reads returns rows
    return collect(result, rows_max), result.is_timed


def _listed(table: pa.Table) -> list[Any]:
    values = json_column(table.column(0)) if table.num_columns else []
    return [value for value in (values if isinstance(values, list) else values.tolist()) if value is not None]

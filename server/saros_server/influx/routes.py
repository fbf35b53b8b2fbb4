"""The routes that clients of InfluxDB call.

    POST /write?db=D&precision=ns                  1.x; u and p, Basic, or none
    POST /api/v2/write?bucket=B&org=O&precision=ns 2.x; Authorization: Token user:password
    POST /query?q=CREATE DATABASE D                1.x: a part of `/query`
    GET  /ping, HEAD /ping                         a part of IoTDB's `/ping`

Thread-safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.datastructures import QueryParams

from saros_server.api import operations
from saros_server.api.executions import Statement
from saros_server.http.errors import HttpError, status_of
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.process.version import RELEASE
from saros_storage.base.errors import UserMistake
from saros_storage.base.paths import quote_node
from saros_wire.line_writes import LinesWritten, LineWrite

#: The version of InfluxDB that clients see: the one whose API is implemented.
_VERSION_HEADERS = {"X-Influxdb-Version": "1.8.10", "X-Influxdb-Build": f"Saros {RELEASE}"}
#: Aliases of time units.
_PRECISIONS = {"": "ns", "n": "ns", "u": "us", "µ": "us"}
#: Clients retry a write after an answer with this HTTP status or above.
_RETRIED_MIN = 500
_CREATE = re.compile(r'\s*create\s+database\s+("(?:[^"\\]|\\.)+"|[^\s";]+)(?:\s+with\b[^;]*)?\s*;?\s*', re.IGNORECASE)
_TAG = "InfluxDB"
_LINES = {"text/plain": {"type": "string", "description": "Lines; plain, or compressed by gzip."}}
_FORM = "application/x-www-form-urlencoded"
_DATABASE_EXISTS = 501


def routes() -> list[Route]:
    """Return the routes, except `/ping`, `/health` and `/query`, which are shared with other clients."""
    unit = "Unit of the times: ns (the default), us, ms, s, m or h."
    first = Description(
        "Write lines of InfluxDB's line protocol, as clients of its 1.x send them.",
        _TAG,
        {"db": "The database.", "precision": unit, "u": "User.", "p": "Password."},
        _LINES,
    )
    second = Description(
        "Write lines of InfluxDB's line protocol, as clients of its 2.x send them.",
        _TAG,
        {"bucket": "The database.", "org": "Not used.", "precision": unit},
        _LINES,
    )
    login = Policy.AUTHENTICATED
    return [
        Route("POST", "/write", login, _write_1, first, query_credentials=True, failure=_failure_1),
        Route("POST", "/api/v2/write", login, _write_2, second, failure=_failure_2),
    ]


def _write_1(request: HttpRequest, session: HttpSession) -> Response:
    return _written(_write(request, session, "db"), _failure_1)


def _write_2(request: HttpRequest, session: HttpSession) -> Response:
    return _written(_write(request, session, "bucket"), _failure_2)


def _write(request: HttpRequest, session: HttpSession, parameter: str) -> LinesWritten:
    precision = request.query.get("precision", "")
    write = LineWrite(
        request.body(),
        database_name(request.query.get(parameter, "")),
        _PRECISIONS.get(precision, precision),
        session.api.now_ns,
    )
    return session.call(operations.WRITE_LINES, write)


def _written(result: LinesWritten, failure: Callable[[int, int, str], Response]) -> Response:
    """Answer a write. Clients do not retry the write if the text contains "partial write"."""
    if not result.codes:
        return Response(status=204, headers=_VERSION_HEADERS)
    status = max(map(status_of, result.codes))
    text = "send all again" if status >= _RETRIED_MIN else "partial write"
    return failure(status, 0, f"{text}: {result.listed}")


def _failure_1(status: int, _: int, message: str) -> Response:
    """Return an error in the format of 1.x."""
    return json_response({"error": message}, status, {**_VERSION_HEADERS, "X-Influxdb-Error": _one_line(message)})


def _failure_2(status: int, _: int, message: str) -> Response:
    """Return an error in the format of 2.x."""
    words = {400: "invalid", 401: "unauthorized", 403: "forbidden", 404: "not found", 413: "request too large"}
    code = words.get(status, "unavailable" if status == 503 else "internal error" if status >= 500 else "invalid")
    return json_response({"code": code, "message": message}, status, _VERSION_HEADERS)


def _one_line(message: str) -> str:
    return "".join(character if " " <= character <= "~" else "?" for character in message)[:1_000]


def database_name(text: str) -> str:
    """Return the database that a parameter names. A retention policy, which follows after a slash, is ignored.

    Raises UserMistake.
    """
    name = text.partition("/")[0].strip()
    if not name:
        raise UserMistake("the name of the database is missing: send db (1.x) or bucket (2.x)", code=509)
    return name


# ---------------------------------------------------------------------------------------------- other calls


def is_influx(request: HttpRequest) -> bool:
    """Return whether a request for `/ping` seems to come from a client of InfluxDB."""
    agent, accept = request.headers.get("user-agent", "").lower(), request.headers.get("accept", "")
    return request.method == "HEAD" or "influx" in agent or "telegraf" in agent or "msgpack" in accept


def ping() -> Response:
    """Answer `/ping`."""
    return Response(status=204, headers=_VERSION_HEADERS)


def influxql_of(request: HttpRequest) -> str | None:
    """Return the InfluxQL statement of a request for `/query`, or None if the request has none."""
    found: str | None = request.query.get("q")
    if found is None and request.headers.get("content-type", "").startswith(_FORM):
        found = QueryParams(request.body().decode("utf-8", "replace")).get("q")
    return found


def run_influxql(text: str, session: HttpSession) -> Response:
    """Execute CREATE DATABASE. Raises HttpError 400 for any other statement."""
    created = _CREATE.fullmatch(text)
    if created is None:
        raise HttpError(
            400, f"InfluxQL other than CREATE DATABASE is not supported: send SQL as sql instead of {text[:60]!r}"
        )
    name = re.sub(r"\\(.)", r"\1", created[1].strip('"'))
    try:
        session.call(operations.EXECUTE, Statement(f"create database root.{quote_node(database_name(name))}"))
    except UserMistake as error:
        if error.code != _DATABASE_EXISTS:
            raise
    return json_response({"results": [{"statement_id": 0}]}, headers=_VERSION_HEADERS)

"""Statements over HTTP: `GET /query?sql=...` and `POST /query`. The client chooses the format of the result.

    /query           the format that the Accept header prefers; CSV by default
    /query.arrow     and .csv, .json, .parquet

With GET, a statement can only read. With POST, the statement may be a parameter of the URL, or the body may be the
statement, a form, or JSON, which can also have values for the `?` in the statement. Results are streamed: each batch is
read from the engine only when the client is ready to receive it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, cast

from starlette.datastructures import QueryParams

from saros_engine.base.errors import StatementNotAllowed
from saros_server.api.executions import ResultHead, Statement
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Chunks, Response, buffers_of, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.influx import routes as influx
from saros_server.rest.formats import FORMATS, Format, format_of
from saros_server.rest.results import execute

_TIMEOUT_MS_MAX = 86_400_000
_PARAMETERS = {"sql": "The statement.", "timeout_ms": "Its time limit; default: that of the node."}
_BODY = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string"},
        "parameters": {"type": "array", "items": {}, "description": "Values of the statement's ?."},
        "timeout_ms": {"type": "integer"},
    },
}


def routes() -> list[Route]:
    """Return the routes."""
    found = _routes("/query", lambda request: format_of(request.headers.get("accept", "")), list(FORMATS.values()))
    for format_ in FORMATS.values():
        found += _routes(f"/query.{format_.name}", _always(format_), [format_])
    return found


def _always(format_: Format) -> Callable[[HttpRequest], Format]:
    return lambda _: format_


def _routes(path: str, choose: Callable[[HttpRequest], Format], formats: list[Format]) -> list[Route]:
    response = {found.content_type: {"type": "string", "format": "binary"} for found in formats}

    def run(request: HttpRequest, session: HttpSession) -> Response:
        influxql = influx.influxql_of(request) if request.method == "POST" else None
        if influxql is not None:
            return influx.run_influxql(influxql, session)
        return _run(request, session, choose(request))

    reading = Description("Run a statement that only reads.", "query", _PARAMETERS, response=response)
    request = {"application/json": _BODY, "text/plain": {"type": "string", "description": "The statement."}}
    writing = Description("Run a statement.", "query", {}, request, response)
    return [
        Route("GET", path, Policy.AUTHENTICATED, run, reading),
        Route("POST", path, Policy.AUTHENTICATED, run, writing),
    ]


def _run(request: HttpRequest, session: HttpSession, format_: Format) -> Response:
    if request.method == "HEAD":  # The length of the result is unknown. A body without chunks would have the length 0.
        return Response(Chunks(iter(()), lambda: None), content_type=format_.content_type)
    try:
        head, result = execute(session, statement_of(request))
    except StatementNotAllowed as error:
        if request.method == "GET":
            raise HttpError(405, f"{error}: send it by POST", error.code, Allow="POST") from error
        raise
    if result is None:
        return _written(head)
    chunks = format_.encode(result)
    if result.stream is None:
        return Response(b"".join(chain.from_iterable(map(buffers_of, chunks))), content_type=format_.content_type)
    return Response(Chunks(chunks, result.close), content_type=format_.content_type)


def _written(head: ResultHead) -> Response:
    """Return the response for a statement that returns no rows."""
    return json_response({"code": 200, "message": "SUCCESS_STATUS", "count": head.update_count})


# ---------------------------------------------------------------------------------------------- the statement


def statement_of(request: HttpRequest) -> Statement:
    """Return the statement of a request. Raises HttpError."""
    fields: dict[str, Any] = dict(request.query)
    if request.method == "POST":
        fields |= _body(request)
    text, parameters = fields.get("sql"), fields.get("parameters", [])
    if not isinstance(text, str) or not text.strip():
        raise HttpError(400, "there is no statement: give it as the parameter sql, or as the body")
    if not isinstance(parameters, list):
        raise HttpError(400, "parameters must be a JSON array: send the request as a JSON object")
    timeout_ms = _timeout_ms(fields.get("timeout_ms", 0))
    return Statement(text, parameters, timeout_ms, read_only=request.method != "POST")


def _body(request: HttpRequest) -> dict[str, Any]:
    """Return the fields that the body of a POST request contains."""
    body = request.body()
    if not body:
        return {}
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == JSON:
        return request.object()
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise HttpError(400, f"the body is not UTF-8: {error}") from error
    if content_type == "application/x-www-form-urlencoded":
        is_form = text.partition("=")[0] in _PARAMETERS  # curl sends this content type by default
        return cast("dict[str, Any]", dict(QueryParams(text))) if is_form else {"sql": text}
    return {"sql": text}


def _timeout_ms(value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdecimal() or int(text) > _TIMEOUT_MS_MAX:
        raise HttpError(400, f"timeout_ms is {text[:40]!r}: expected whole milliseconds up to {_TIMEOUT_MS_MAX}")
    return int(text)

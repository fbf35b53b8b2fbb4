"""`POST /console/query`: execute a statement, and return its result in lines of JSON, column by column.

    {"query_id", "columns": [{"name", "type"}], "count"}       count: of a statement without rows
    {"rows", "values": [[...], ...]}                           as often as there are rows
    {"end": true, "stale"}   or   {"error": {"code", "message"}}

The last line shows that the result is complete: it is missing if the result was cut off. Times are ISO 8601 texts in
UTC. Numbers that JavaScript cannot represent (integers beyond 2^53, NaN, infinities) are texts. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from saros_server.api.executions import ResultHead
from saros_server.http.errors import failure_of
from saros_server.http.request import HttpRequest
from saros_server.http.response import Chunks, Response
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession
from saros_server.rest.query import statement_of
from saros_server.rest.results import Result, execute, iso_times, json_column

NDJSON = "application/x-ndjson"
#: Rows in one line.
_LINE_ROWS = 5_000
#: JavaScript represents all integers up to this one exactly.
_SAFE_INTEGER = 2**53 - 1


def routes() -> list[Route]:
    """Return the route."""
    return [Route("POST", "/console/query", Policy.AUTHENTICATED, _run)]


def _run(request: HttpRequest, session: HttpSession) -> Response:
    head, result = execute(session, statement_of(request))
    if result is None:
        return Response(_line(_head(head, [])) + _line(_end(head)), content_type=NDJSON)
    lines = _lines(head, result)
    if result.stream is None:
        return Response(b"".join(lines), content_type=NDJSON)
    return Response(Chunks(lines, result.close), content_type=NDJSON)


def _lines(head: ResultHead, result: Result) -> Iterator[bytes]:
    yield _line(_head(head, result.schema.names))
    try:
        for batch in result.batches():
            for start in range(0, batch.num_rows, _LINE_ROWS):
                rows = batch.slice(start, _LINE_ROWS)
                yield _line({"rows": rows.num_rows, "values": [column_values(column) for column in rows.columns]})
    except Exception as error:  # noqa: BLE001 (the status was sent)
        failure = failure_of(error)
        yield _line({"error": {"code": failure.code, "message": failure.message}})
        return
    yield _line(_end(head))


def _head(head: ResultHead, names: list[str]) -> dict[str, Any]:
    columns = [{"name": name, "type": type_} for name, type_ in zip(names, head.type_names, strict=True)]
    return {"query_id": head.query_id, "columns": columns, "count": head.update_count}


def _end(head: ResultHead) -> dict[str, Any]:
    return {"end": True, "stale": head.stale}


def column_values(column: pa.Array) -> Any:
    """Return the values of a column in the form that the console expects."""
    if pa.types.is_timestamp(column.type):
        column = iso_times(column)
    if pa.types.is_int64(column.type) and _is_beyond_javascript(column):
        return column.cast(pa.string()).to_pylist()
    found = json_column(column)
    if isinstance(found, np.ndarray) and found.dtype.kind == "f" and not np.isfinite(found).all():
        return [value if np.isfinite(value) else str(value) for value in found.tolist()]
    return found


def _is_beyond_javascript(column: pa.Array) -> bool:
    bounds = pc.min_max(column).as_py()
    return bounds["min"] is not None and not -_SAFE_INTEGER <= bounds["min"] <= bounds["max"] <= _SAFE_INTEGER


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"

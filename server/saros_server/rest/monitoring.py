"""Routes for the operators of a node: its last slow statements, and the newest lines of its audit trail.

GET /statements/slow                 the last slow statements of the user, or with MAINTAIN of all users, newest first
GET /audit?user=U&event=E&limit=N    the newest lines of the audit trail, newest first; only for administrators
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import asdict

from saros_server.api import operations
from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Response, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession

_TAG = "monitoring"
_LINES, _LINES_MAX = 100, 1_000
_AUDIT = {
    "user": "Only lines of this user.",
    "event": "Only lines of this kind.",
    "limit": "Maximum number of lines: 1 to 1000.",
}


def routes() -> list[Route]:
    """Return the routes."""
    answer = {JSON: {"type": "object"}}
    slow = Description("Show the last slow statements of the node.", _TAG, response=answer)
    audit = Description("Show the newest lines of the node's audit trail.", _TAG, _AUDIT, response=answer)
    return [
        Route("GET", "/statements/slow", Policy.AUTHENTICATED, _slow_statements, slow),
        Route("GET", "/audit", Policy.AUTHENTICATED, _audit, audit),
    ]


def _slow_statements(_: HttpRequest, session: HttpSession) -> Response:
    found = session.call(operations.SLOW_STATEMENTS, None)
    rows = [
        {
            "time": datetime.fromtimestamp(slow.started_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
            "user": slow.client.user,
            "ms": slow.elapsed_ms,
            "query": slow.query_id,
            "statement": slow.statement,
        }
        for slow in found
    ]
    return json_response({"threshold_ms": session.api.node.configuration.slow_query_ms, "statements": rows})


def _audit(request: HttpRequest, session: HttpSession) -> Response:
    limit = request.query.get("limit", str(_LINES))
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= _LINES_MAX:
        raise HttpError(400, f"limit is {limit[:40]!r}: expected a number from 1 to {_LINES_MAX}")
    asked = operations.AuditQuery(request.query.get("user", ""), request.query.get("event", ""), int(limit))
    tail = session.call(operations.AUDIT_TAIL, asked)
    return json_response({"lines": [asdict(line) for line in tail.lines], "complete": tail.is_complete})

"""Errors of HTTP requests: the HTTP status for each of Saros's error codes, and the JSON form of all errors.

    {"code": 700, "message": "..."}

`code` is the error code, as listed in docs/errors.md. Pure: any thread.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from saros_server.api.errors import refusal_of

BAD_REQUEST = 2003
NOT_LOGGED_IN = 803
BUSY = 2034

#: HTTP statuses by error code. A code that is not listed here stands for a mistake of the client, and has status 400.
_STATUSES = {
    500: 404,
    504: 404,
    508: 404,
    600: 503,
    606: 503,
    712: 504,
    801: 401,
    803: 403,
    2000: 500,
    2001: 500,
    2002: 501,
    2010: 503,
    2012: 500,
    2013: 500,
    2014: 401,
    2015: 503,
    2016: 503,
    2017: 503,
    2018: 500,
    2021: 503,
    2026: 503,
    2031: 503,
    2033: 503,
    2034: 503,
    2042: 404,
}
_BAD_STATUS = 400
#: Additional headers of the responses with an HTTP status: how to log in (401), and when to retry (503).
_HEADERS: dict[int, dict[str, str]] = {
    401: {"WWW-Authenticate": 'Basic realm="saros", charset="UTF-8"'},
    503: {"Retry-After": "1"},
}


class HttpError(Exception):
    """A request is refused, with this HTTP status."""

    def __init__(self, status: int, message: str, code: int = BAD_REQUEST, **headers: str) -> None:
        """Create the error. The names in `headers` are names of response headers, with `_` in place of `-`."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Failure(msgspec.Struct, frozen=True):
    """The answer to a failed request."""

    status: int
    code: int
    message: str
    headers: Mapping[str, str]


def failure_of(error: Exception) -> Failure:
    """Return the answer to a request that has ended with an exception. If the exception shows a bug, it is logged."""
    if isinstance(error, HttpError):
        return Failure(error.status, error.code, str(error), _HEADERS.get(error.status, {}) | error.headers)
    code, message = refusal_of(error)
    status = status_of(code)
    return Failure(status, code, message, _HEADERS.get(status, {}))


def status_of(code: int) -> int:
    """Return the HTTP status of an error code."""
    return _STATUSES.get(code, _BAD_STATUS)

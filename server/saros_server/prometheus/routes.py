"""The routes that Prometheus calls.

    POST /api/v1/write    remote write 1.0: 204; 400 for permanent errors; 503 for temporary ones
    POST /api/v1/read     remote read, as SAMPLES

Bodies are protobuf, compressed by Snappy. Thread-safe.
"""

from __future__ import annotations

import cramjam
from google.protobuf.message import DecodeError

from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.prometheus.remote_read import read
from saros_server.prometheus.remote_write import decoded, write
from saros_wire.generated.prometheus_pb2 import ReadRequest

_PROTOBUF = "application/x-protobuf"
#: The message of remote write 2.0.
_VERSION_2 = "io.prometheus.write.v2"
_BODY = {_PROTOBUF: {"type": "string", "format": "binary", "description": "Protobuf, compressed by Snappy."}}
_TAG = "Prometheus"


def routes() -> list[Route]:
    """Return the routes."""
    writing = Description("Write samples: Prometheus' remote write 1.0.", _TAG, request=_BODY)
    reading = Description("Read samples: Prometheus' remote read.", _TAG, request=_BODY, response=_BODY)
    return [
        Route("POST", "/api/v1/write", Policy.AUTHENTICATED, _write, writing),
        Route("POST", "/api/v1/read", Policy.AUTHENTICATED, _read, reading),
    ]


def _write(request: HttpRequest, session: HttpSession) -> Response:
    if _VERSION_2 in request.headers.get("content-type", ""):
        raise HttpError(415, "remote write 2.0 is not supported: send version 1.0 (prometheus.WriteRequest)")
    result = write(decoded(request.body()), session)
    if result.count:
        raise HttpError(result.status, result.message)
    return Response(status=204)


def _read(request: HttpRequest, session: HttpSession) -> Response:
    try:
        message = ReadRequest.FromString(request.body())
    except DecodeError as error:
        raise HttpError(400, f"the body is not a ReadRequest of remote read: {error}") from error
    accepted = message.accepted_response_types
    if accepted and ReadRequest.SAMPLES not in accepted:
        raise HttpError(400, "responses are of type SAMPLES only: accept that")
    body = bytes(cramjam.snappy.compress_raw(read(message, session)))
    return Response(body, content_type=_PROTOBUF, headers={"Content-Encoding": "snappy"})

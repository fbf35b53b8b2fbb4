"""Responses of routes: complete, or in chunks that are produced while the client reads. Pure: any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import orjson

JSON, TEXT = "application/json", "text/plain; charset=utf-8"

Buffer: TypeAlias = bytes | memoryview
#: A part of a body: one buffer, or several that are sent one after the other. The buffers are not copied.
Chunk: TypeAlias = Buffer | Sequence[Buffer]


def buffers_of(chunk: Chunk) -> Sequence[Buffer]:
    """Return the buffers of a chunk. Their items are single bytes."""
    return (chunk,) if isinstance(chunk, bytes | memoryview) else chunk


class Chunks(msgspec.Struct, frozen=True):
    """A body that is produced while the client reads it."""

    chunks: Iterator[Chunk]
    #: A function that releases the source of the chunks. It is always called, even if no chunk has been produced.
    close: Callable[[], object]


class Response(msgspec.Struct, frozen=True):
    """A status, headers and a body.

    A body in chunks is produced on threads of the service, each chunk only after the previous one has been sent. If the
    first chunk fails, the error becomes the response. A later error aborts the connection, which shows the client that
    the body is incomplete.
    """

    body: bytes | Chunks = b""
    status: int = 200
    content_type: str = TEXT
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with the value as JSON. NumPy arrays become lists, and NaN becomes null."""
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, JSON, headers or {})


def error_response(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the JSON response for an error."""
    return json_response({"code": code, "message": message}, status, headers)

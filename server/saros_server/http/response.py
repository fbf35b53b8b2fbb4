"""Responses of routes: complete, or in chunks that are produced while the client reads. Pure: any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
import orjson

JSON, TEXT = "application/json", "text/plain; charset=utf-8"

Buffer: TypeAlias = bytes | memoryview
#: A part of a body: one buffer, or several to send one after the other. Buffers are not copied.
Chunk: TypeAlias = Buffer | Sequence[Buffer]


def buffers_of(chunk: Chunk) -> Sequence[Buffer]:
    """Return the buffers of a chunk. Their items are single bytes."""
    return (chunk,) if isinstance(chunk, bytes | memoryview) else chunk


class Chunks(msgspec.Struct, frozen=True):
    """A body that is produced while the client reads it."""

    chunks: Iterator[Chunk]
    #: Releases the source of the chunks. This function is always called, possibly before the first chunk is produced.
    close: Callable[[], object]


class Response(msgspec.Struct, frozen=True):
    """A status, headers and a body.

    Chunks are produced on a thread of the service. Each chunk is produced only after the previous one was sent. If the
    first chunk fails, the error becomes the response. A later error aborts the connection, so that the client sees that
    the body is incomplete.
    """

    body: bytes | Chunks = b""
    status: int = 200
    content_type: str = TEXT
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; NumPy arrays are written as lists, and NaN as null."""
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, JSON, headers or {})


def error_response(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the JSON response for an error."""
    return json_response({"code": code, "message": message}, status, headers)

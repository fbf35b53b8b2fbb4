"""Responses of routes: complete, or streamed in chunks that are produced while the client reads. Pure: any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson

JSON, TEXT = "application/json", "text/plain; charset=utf-8"

Buffer: TypeAlias = bytes | memoryview
#: A part of a body: a buffer, or several that follow each other. They are not copied on their way to the client.
Chunk: TypeAlias = Buffer | Sequence[Buffer]


def buffers_of(chunk: Chunk) -> Sequence[Buffer]:
    """Return the buffers of a chunk; items of one byte."""
    return (chunk,) if isinstance(chunk, bytes | memoryview) else chunk


@dataclass(frozen=True, slots=True)
class Chunks:
    """A body that is produced while the client takes it."""

    chunks: Iterator[Chunk]
    #: Releases what the chunks are made of; called in any case, also before the first one.
    close: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Response:
    """A status, headers and a body.

    Chunks are produced on a thread of the service, each when the one before it was taken. An error of the first chunk
    becomes the response; a later one ends the connection, so that the client sees that the body is not complete.
    """

    body: bytes | Chunks = b""
    status: int = 200
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response of JSON; arrays of NumPy are written as lists, NaN as null."""
    return Response(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY), status, JSON, headers or {})


def error_response(status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response of an error."""
    return json_response({"code": code, "message": message}, status, headers)

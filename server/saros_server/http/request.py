"""Requests, as the functions of routes get them. Not thread-safe: only one thread at a time uses a request."""

from __future__ import annotations

import zlib
from typing import Any

import cramjam
import msgspec
import orjson
from starlette.datastructures import Headers, QueryParams

from saros_server.api.calls import Peer
from saros_server.http.errors import HttpError
from saros_server.http.limits import HttpLimits

#: The value of zlib's window bits that makes it read the gzip format.
_GZIP = 31
#: The largest factor by which decompression can enlarge a Snappy block: a copy element of 3 bytes produces 64 bytes.
_SNAPPY_RATIO_MAX = 22


class HttpRequest(msgspec.Struct, frozen=True):
    """A request with its complete body."""

    method: str
    path: str
    peer: Peer
    headers: Headers
    query: QueryParams
    #: The body as it was sent.
    raw_body: bytes
    limits: HttpLimits

    def body(self) -> bytes:
        """Return the body, decompressed. Raises HttpError (413 too large, 415 unknown encoding, 400 damaged)."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        match encoding:
            case "identity" | "":
                return self.raw_body
            case "gzip" | "x-gzip":
                return _gunzip(self.raw_body, self.limits.plain_body_bytes)
            case "snappy":
                return _unsnappy(self.raw_body, self.limits.plain_body_bytes)
            case _:
                known = "send the body plain, as gzip or as snappy"
                raise HttpError(415, f"content encoding {encoding[:20]!r} is unknown: {known}")

    def json(self) -> Any:
        """Return the body, parsed as JSON. Raises HttpError."""
        try:
            return orjson.loads(self.body())
        except orjson.JSONDecodeError as error:
            raise HttpError(400, f"the body is not JSON: {error}") from error

    def object(self) -> dict[str, Any]:
        """Return the body, parsed as a JSON object. Raises HttpError."""
        found = self.json()
        if not isinstance(found, dict):
            raise HttpError(400, f"the body must be a JSON object, not {type(found).__name__}")
        return found


def _gunzip(data: bytes, bytes_max: int) -> bytes:
    """Decompress one or more gzip members. Raises HttpError."""
    parts, left = list[bytes](), bytes_max
    while data:
        reader = zlib.decompressobj(_GZIP)
        try:
            parts.append(reader.decompress(data, left + 1))
        except zlib.error as error:
            raise HttpError(400, f"the body is not gzip: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise _too_large(bytes_max)
        if not reader.eof:
            raise HttpError(400, "the body is not gzip: it ends early")
        data = reader.unused_data
    return b"".join(parts)


def _unsnappy(data: bytes, bytes_max: int) -> bytes:
    """Decompress a Snappy block, after checking its declared length. Raises HttpError."""
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > bytes_max:
            raise _too_large(bytes_max)
        if size > _SNAPPY_RATIO_MAX * len(data):
            raise HttpError(400, f"the body is not a block of snappy: {len(data)} bytes cannot become {size}")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise HttpError(400, f"the body is not a block of snappy: {error}") from error


def _too_large(bytes_max: int) -> HttpError:
    return HttpError(413, f"the body has more than {bytes_max} bytes when decompressed: send less at a time")

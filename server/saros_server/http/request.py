"""A request as functions of routes see it. One thread at a time."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import cramjam
import orjson
from starlette.datastructures import Headers, QueryParams

from saros_server.api.calls import Peer
from saros_server.http.errors import HttpError
from saros_server.http.limits import HttpLimits

#: zlib reads the header of gzip.
_GZIP = 31
#: A block of Snappy is at most this many times larger when decompressed: its best copies turn 3 bytes into 64.
_SNAPPY_RATIO_MAX = 22


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A complete request."""

    method: str
    path: str
    peer: Peer
    headers: Headers
    query: QueryParams
    #: As it was sent.
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
        """Return the body, which is JSON. Raises HttpError."""
        try:
            return orjson.loads(self.body())
        except orjson.JSONDecodeError as error:
            raise HttpError(400, f"the body is not JSON: {error}") from error

    def object(self) -> dict[str, Any]:
        """Return the body, which is an object of JSON. Raises HttpError."""
        found = self.json()
        if not isinstance(found, dict):
            raise HttpError(400, f"the body is JSON, but {type(found).__name__} instead of an object")
        return found


def _gunzip(data: bytes, bytes_max: int) -> bytes:
    """Return the plain bytes of one or more members of gzip."""
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
    """Return the plain bytes of a block of Snappy; its length is checked before there is memory for it."""
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

"""The files of the console.

The files form a fixed list, and each is read from the package once. No part of a request names a file.

Each file has a strong ETag for each of its two encodings. The URL of a script or a style contains the file's version,
so that browsers may cache the file. Immutable: any thread.
"""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources

import msgspec

from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response
from saros_server.http.routes import Policy, Route
from saros_server.http.session import HttpSession

_CONTENT_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "THIRD_PARTY.txt": "text/plain; charset=utf-8",
}
#: Pages load nothing from other origins, run no inline scripts, and cannot be framed.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Accept-Encoding",
}
_VERSIONED, _REVALIDATED = "private, max-age=31536000, immutable", "no-cache"
_PLACE = "/console/"


class Asset(msgspec.Struct, frozen=True):
    """A file of the console."""

    content: bytes
    compressed: bytes
    content_type: str
    version: str

    @classmethod
    def load(cls, name: str) -> Asset:
        """Read a file of the package."""
        content = resources.files(__package__).joinpath("static", name).read_bytes()
        version = hashlib.sha256(content).hexdigest()[:16]
        return cls(content, gzip.compress(content, mtime=0), _CONTENT_TYPES[name], version)

    def answer(self, request: HttpRequest, _: HttpSession) -> Response:
        """Answer a request for the file."""
        zipped = "gzip" in request.headers.get("accept-encoding", "")
        etag = f'"{self.version}{"-gz" if zipped else ""}"'
        cache = _VERSIONED if request.query.get("v") else _REVALIDATED
        headers = _HEADERS | {"ETag": etag, "Cache-Control": cache}
        if etag in request.headers.get("if-none-match", ""):
            return Response(b"", 304, self.content_type, headers)
        if zipped:
            return Response(self.compressed, 200, self.content_type, headers | {"Content-Encoding": "gzip"})
        return Response(self.content, 200, self.content_type, headers)


def routes() -> list[Route]:
    """Return the routes of all files, and the routes that lead to the page."""
    assets = {name: Asset.load(name) for name in _CONTENT_TYPES}
    found = [Route("GET", _PLACE + name, Policy.PUBLIC, asset.answer) for name, asset in assets.items()]
    return [
        *found,
        Route("GET", _PLACE, Policy.PUBLIC, assets["index.html"].answer),
        Route("GET", _PLACE.rstrip("/"), Policy.PUBLIC, _to_console),
        Route("GET", "/", Policy.PUBLIC, _root),
    ]


def _to_console(_: HttpRequest, __: HttpSession) -> Response:
    return Response(b"", 303, headers={"Location": _PLACE})


def _root(request: HttpRequest, session: HttpSession) -> Response:
    """Redirect browsers to the console."""
    if "text/html" in request.headers.get("accept", ""):
        return _to_console(request, session)
    raise HttpError(404, f"/ redirects browsers to {_PLACE}: /openapi.json lists the paths for programs")

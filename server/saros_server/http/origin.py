"""Protect a node from web pages in browsers on the same machine. Pure: any thread.

A page of any web site can make its browser send requests to this service. Browsers mark such requests with headers
(Sec-Fetch-Site, Origin), and the service refuses them. A node without users trusts everyone on its machine, so it also
checks the host name in each request. Otherwise, a site could bypass the protection with a host name that resolves to a
loopback address (DNS rebinding).
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers

from saros_server.http.errors import HttpError

_FOREIGN_SITES = ("cross-site", "same-site")


def check_origin(headers: Headers) -> None:
    """Check that a request was not sent by a page of another origin. Raises HttpError 403."""
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if foreign or headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
        raise HttpError(403, "requests from web pages of other sites are refused: send them from your own server")


def check_local_name(headers: Headers) -> None:
    """Check that the host name in a request is localhost or an IP address. Raises HttpError 403."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name and not _is_local_name(name.lower()):
        raise HttpError(
            403,
            f"this node has no users, so it refuses requests to the host name {name[:100]!r}: use http://127.0.0.1",
        )


def _is_local_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True

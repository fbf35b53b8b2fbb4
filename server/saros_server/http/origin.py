"""Protection of a node from web pages that a browser on the same machine shows.

A page of any site can make its browser send requests to this service. Browsers say so in headers (Sec-Fetch-Site,
Origin); such requests are refused. A node without users trusts everyone on its machine, so there the name by which it
is called is checked too: a site whose name resolves to a loopback address (DNS rebinding) would otherwise pass.
Pure: any thread.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers

from saros_server.http.errors import HttpError

_FOREIGN_SITES = ("cross-site", "same-site")


def check_origin(headers: Headers) -> None:
    """Raise HttpError 403 for a request that a page of another origin has made."""
    origin = headers.get("origin")
    foreign = origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower()
    if foreign or headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
        raise HttpError(403, "requests of web pages of other sites are refused: let a server of yours send them")


def check_local_name(headers: Headers) -> None:
    """Raise HttpError 403 for a request to another name than that of this machine for itself, or an address."""
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    if name and not _is_local_name(name.lower()):
        raise HttpError(403, f"this node has no users, so it is not served as {name[:100]!r}: use http://127.0.0.1")


def _is_local_name(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True

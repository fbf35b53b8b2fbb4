"""Routes: each has a method and a path, a policy for clients, and a function that answers requests.

Every route must have a policy, as every operation of the client API must. Immutable: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec

from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response
from saros_server.http.session import HttpSession

#: A function that answers a request. It runs on a thread of the service. If the policy is PUBLIC, the session has no
#: token.
RouteFunction = Callable[[HttpRequest, HttpSession], Response]


class Policy(Enum):
    """The clients that may use a route."""

    PUBLIC = "anyone who can reach the port"
    #: Clients that log in. If the node has no users, all clients.
    AUTHENTICATED = "users who log in"
    LOCAL_OR_AUTHENTICATED = "anyone on this machine, and users who log in"


class Description(msgspec.Struct, frozen=True):
    """The description of a route for the OpenAPI document."""

    summary: str = ""
    #: The name of the group to which the document assigns the route.
    tag: str = ""
    #: The description of each query parameter.
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: The JSON schemas of the request's body and of the response's body, by content type.
    request: Mapping[str, Any] = msgspec.field(default_factory=dict)
    response: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Route(msgspec.Struct, frozen=True):
    """A route of the HTTP service."""

    method: str
    path: str
    policy: Policy
    function: RouteFunction
    description: Description = msgspec.field(default_factory=Description)
    #: True if the query parameters `u` and `p` are credentials.
    query_credentials: bool = False
    #: A function that returns the response for an HTTP status, an error code and a message. If it is None,
    #: `http.response` makes the response.
    failure: Callable[[int, int, str], Response] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError if the policy is not a `Policy`."""
        if not isinstance(self.policy, Policy):
            raise TypeError(f"route {self.method} {self.path} has no policy")


class RouteTable:
    """Routes by path and method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Create the table. Raises ValueError if two routes have the same method and path."""
        self._routes: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = self._routes.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"there are two routes {route.method} {route.path}")
            methods[route.method] = route

    def __iter__(self) -> Iterator[Route]:
        """Iterate over all routes."""
        return (route for methods in self._routes.values() for route in methods.values())

    def find(self, method: str, path: str) -> Route:
        """Return the route of a request. For a HEAD request, this is the route for GET. Raises HttpError 404, 405."""
        methods = self._routes.get(path)
        if methods is None:
            raise HttpError(404, f"there is no {path[:200]} here: /openapi.json lists the paths")
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            allowed = ", ".join(methods)
            raise HttpError(405, f"{path} takes {allowed}, not {method}", Allow=allowed)
        return route

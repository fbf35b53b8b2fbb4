"""Routes: a method and a path, the clients that may use them, and the function that answers.

A route without a policy cannot be made, as an operation of the client API cannot. Immutable: any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from saros_server.http.errors import HttpError
from saros_server.http.request import HttpRequest
from saros_server.http.response import Response
from saros_server.http.session import HttpSession

#: Answers a request; runs on a thread of the service. The session has no token where the policy is PUBLIC.
RouteFunction = Callable[[HttpRequest, HttpSession], Response]


class Policy(Enum):
    """The clients that may use a route."""

    PUBLIC = "anyone who can reach the port"
    #: A node without users takes everyone.
    AUTHENTICATED = "users who log in"
    LOCAL_OR_AUTHENTICATED = "anyone on this machine, and users who log in"


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a route for the OpenAPI document."""

    summary: str = ""
    #: Groups routes.
    tag: str = ""
    #: Name and meaning of parameters of the query.
    parameters: Mapping[str, str] = field(default_factory=dict)
    #: The body of requests and that of responses, by content type: their JSON schema.
    request: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A route."""

    method: str
    path: str
    policy: Policy
    function: RouteFunction
    description: Description = field(default_factory=Description)
    #: Parameters `u` and `p` of the query are credentials.
    query_credentials: bool = False
    #: The form of errors, if it is not that of `saros_server.http.errors`: of HTTP status, error code and message.
    failure: Callable[[int, int, str], Response] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError if the policy is not a `Policy`."""
        if not isinstance(self.policy, Policy):
            raise TypeError(f"route {self.method} {self.path} has no policy")


class RouteTable:
    """Routes by path and method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raise ValueError if two routes have the same method and path."""
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
        """Return the route of a request; that of GET answers HEAD too. Raises HttpError 404, 405."""
        methods = self._routes.get(path)
        if methods is None:
            raise HttpError(404, f"there is no {path[:200]} here: /openapi.json lists the paths")
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            allowed = ", ".join(methods)
            raise HttpError(405, f"{path} takes {allowed}, not {method}", Allow=allowed)
        return route

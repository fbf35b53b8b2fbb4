"""The OpenAPI document of the service, generated from its routes: `GET /openapi.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, Response, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.process.version import RELEASE

_ERROR = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
    "required": ["code", "message"],
}
_SCHEMES = {"password": {"type": "http", "scheme": "basic"}, "token": {"type": "http", "scheme": "bearer"}}
_INFO = {
    "title": "Saros",
    "version": RELEASE,
    "description": "SQL and inserts over HTTP.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}


def route(routes: Sequence[Route]) -> Route:
    """Return the route for the document. The document describes `routes` and this route."""
    description = Description("This document.", "description", response={JSON: {"type": "object"}})

    def answer(_: HttpRequest, __: HttpSession) -> Response:
        return json_response(document([*routes, found]))

    found = Route("GET", "/openapi.json", Policy.PUBLIC, answer, description)
    return found


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document (OpenAPI 3.1)."""
    paths: dict[str, dict[str, Any]] = {}
    for described in routes:
        paths.setdefault(described.path, {})[described.method.lower()] = _operation(described)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "paths": paths,
        "components": {"securitySchemes": _SCHEMES, "schemas": {"Error": _ERROR}},
    }


def _operation(described: Route) -> dict[str, Any]:
    about = described.description
    operation: dict[str, Any] = {
        "operationId": f"{described.method.lower()}{described.path.title().replace('/', '').replace('.', '')}",
        "summary": about.summary,
        "tags": [about.tag],
        "security": [] if described.policy is Policy.PUBLIC else [{name: []} for name in _SCHEMES],
        "responses": {
            **_success(about),
            "default": {
                "description": "The error.",
                "content": _content({JSON: {"$ref": "#/components/schemas/Error"}}),
            },
        },
    }
    if about.parameters:
        operation["parameters"] = [
            {"name": name, "in": "query", "description": text, "schema": {"type": "string"}, "required": name == "sql"}
            for name, text in about.parameters.items()
        ]
    if about.request:
        operation["requestBody"] = {"content": _content(about.request), "required": True}
    return operation


def _success(about: Description) -> dict[str, Any]:
    """Return the description of a successful response, which has status 204 if the route has no response body."""
    if not about.response:
        return {"204": {"description": "Done."}}
    return {"200": {"description": "The result.", "content": _content(about.response)}}


def _content(schemas: Any) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}

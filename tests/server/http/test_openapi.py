"""The OpenAPI document: it describes every route, and is self-contained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from server.http.http_node import http_server

from saros_server.http.routes import Policy
from saros_server.rest.openapi import document
from saros_server.server import http_routes


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from nodes(each)
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def test_the_service_gives_it_to_anyone(tmp_path: Path) -> None:
    with http_server(tmp_path / "data") as node:
        found = node.client.get("/openapi.json").json()
    assert "3.1.0" == found["openapi"]
    assert {"/metrics", "/health", "/ready", "/ping", "/query", "/openapi.json"} <= found["paths"].keys()


def test_each_route_is_described() -> None:
    routes = http_routes([])
    paths = document(routes)["paths"]
    for route in routes:
        operation = paths[route.path][route.method.lower()]
        assert "" not in (operation["summary"], *operation["tags"]), route.path
        assert (route.policy is Policy.PUBLIC) == (operation["security"] == [])
        described = {"200": {"description", "content"}} if route.description.response else {"204": {"description"}}
        responses = {status: set(about) for status, about in operation["responses"].items() if status != "default"}
        assert described == responses, route.path
        assert (route.method == "POST") == ("requestBody" in operation), route.path


def test_operations_have_names_of_their_own() -> None:
    paths = document(http_routes([]))["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names), names


def test_schemas_are_complete() -> None:
    found = document(http_routes([]))
    for node in nodes(found):
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/components/schemas/") in found["components"]["schemas"]
        if node.get("type") == "array":
            assert "items" in node

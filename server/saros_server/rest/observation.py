"""Routes for monitoring programs. Thread-safe.

GET /metrics    metrics in Prometheus's text format; if the node has users, clients on other machines must log in
GET /health     status 200 while the process answers
GET /ready      status 200 while the node accepts writes, otherwise 503; clients on this machine also get the reason
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.process_collector import ProcessCollector

from saros_server.http.metrics import NodeCollector
from saros_server.http.request import HttpRequest
from saros_server.http.response import JSON, TEXT, Response, json_response
from saros_server.http.routes import Description, Policy, Route
from saros_server.http.session import HttpSession
from saros_server.node.node import Node
from saros_server.process.version import RELEASE

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_TAG = "monitoring"


class Observation:
    """The routes and their functions."""

    def __init__(self, node: Node, collector: NodeCollector) -> None:
        self._node = node
        self._registry = CollectorRegistry()
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)

    def routes(self) -> list[Route]:
        """Return the routes."""
        text = {TEXT: {"type": "string"}}
        metrics = Description("Metrics in the text format of Prometheus.", _TAG, response=text)
        health = Description("200 while the process answers.", _TAG, response=text)
        ready = Description("200 while the node takes writes, 503 while it does not.", _TAG, response=text)
        return [
            Route("GET", "/metrics", Policy.LOCAL_OR_AUTHENTICATED, self._metrics, metrics),
            Route("GET", "/health", Policy.PUBLIC, _health, health),
            Route("GET", "/ready", Policy.PUBLIC, self._ready, ready),
        ]

    def _metrics(self, _: HttpRequest, __: HttpSession) -> Response:
        return Response(generate_latest(self._registry), content_type=_PROMETHEUS)

    def _ready(self, request: HttpRequest, _: HttpSession) -> Response:
        problem = self._node.blocked_by()
        if problem is None:
            return Response(b"ok\n")
        return Response(f"{problem if request.peer.is_local else 'not ready'}\n".encode(), 503)


def _health(request: HttpRequest, _: HttpSession) -> Response:
    """Return a text. Clients of InfluxDB, which ask for JSON, get InfluxDB's health document instead."""
    if JSON in request.headers.get("accept", ""):
        return json_response({"name": "saros", "message": "ready", "status": "pass", "checks": [], "version": RELEASE})
    return Response(b"ok\n")

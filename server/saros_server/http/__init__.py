"""The HTTP service: connections, requests, sessions, routes and responses; the metrics of a node."""

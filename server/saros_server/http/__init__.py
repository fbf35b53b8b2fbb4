"""The HTTP service: connections, requests, sessions, routes and responses; metrics, health and readiness."""

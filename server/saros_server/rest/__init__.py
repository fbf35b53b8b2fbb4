"""Statements and inserts over HTTP: IoTDB's REST interface, results in several formats, Grafana, OpenAPI."""

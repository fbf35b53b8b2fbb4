"""Statements and inserts over HTTP: IoTDB's REST, results in several formats by URL, Grafana, the OpenAPI document."""

"""Routes: IoTDB's REST interface, results in several formats, Grafana, OpenAPI; metrics, health and readiness."""

"""HTTP: metrics for Prometheus, health and readiness."""

"""Prometheus: routes for remote write and remote read, and the devices that store its series."""

"""Writes of InfluxDB's clients over HTTP."""

"""Aggregates over windows of all kinds: of time, of rows, of values."""

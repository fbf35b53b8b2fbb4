"""Aggregation over windows: windows of time, and windows formed by the rows or their values."""

"""Caches bounded by weight: decoded pages, indexes that lead to them, aggregates per window."""

"""Caches bounded by weight: decoded pages, indexes of devices, aggregates per window."""

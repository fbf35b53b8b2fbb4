"""What users of the data sources meet: one class, whose sentence says what to change."""

from __future__ import annotations


class SourceError(Exception):
    """An option, a schema or a row that cannot be: the message names it, and what to do."""

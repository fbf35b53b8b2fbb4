"""The error of the data sources: one class, whose message says what to change."""

from __future__ import annotations


class SourceError(Exception):
    """An invalid option, schema or row; the message names it and the remedy. A retry does not help."""

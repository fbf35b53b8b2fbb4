"""The only class of errors that the data sources raise; the message says what the user must change."""

from __future__ import annotations


class SourceError(Exception):
    """An invalid option, schema or row; the message names it and the remedy. A retry does not help."""

"""The only class of errors that the data sources raise. The message tells the user how to remove the error."""

from __future__ import annotations


class SourceError(Exception):
    """An option, a schema or a row is invalid. The message names it and the remedy. A retry does not help."""

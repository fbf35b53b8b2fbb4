"""Building blocks for modules with user-defined functions and triggers. `docs/sql/extensions.md` describes them."""

from __future__ import annotations

from saros_engine.extensions.interface import (
    ANY,
    NUMBERS,
    TEXTS,
    AggregateFunction,
    Answer,
    Batch,
    Refused,
    Rows,
    ScalarFunction,
    SeriesFunction,
    Trigger,
    Values,
)
from saros_storage.base.types import DataType

__all__ = [
    "ANY",
    "NUMBERS",
    "TEXTS",
    "AggregateFunction",
    "Answer",
    "Batch",
    "DataType",
    "Refused",
    "Rows",
    "ScalarFunction",
    "SeriesFunction",
    "Trigger",
    "Values",
]

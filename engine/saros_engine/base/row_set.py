"""Rows as SHOW, COUNT and LIST answer them; the coordinator makes a result of them. Values: any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from saros_engine.plan.plan import Field
from saros_storage.base.types import Scalar

Row = Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows and what their columns are."""

    fields: tuple[Field, ...]
    rows: list[Row]
    #: The first column is the time of the rows, never null: a client gets it as the Time of a query's rows.
    timed: bool = False

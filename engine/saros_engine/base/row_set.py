"""Rows of SHOW, COUNT and LIST, from which the coordinator makes a result. Values: any thread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from saros_engine.plan.plan import Field
from saros_storage.base.types import Scalar

Row = Sequence[Scalar]


class RowSet(msgspec.Struct, frozen=True):
    """Rows and the description of their columns."""

    fields: tuple[Field, ...]
    rows: list[Row]
    #: True if the first column is the time of the rows, which is never null. Clients get this column like the Time
    #: column of a query.
    timed: bool = False

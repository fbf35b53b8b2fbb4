"""The options of databases and series that writes create. Pure: any thread."""

from __future__ import annotations

import msgspec

from saros_storage.base.types import DataType


class AutomaticSchema(msgspec.Struct, frozen=True):
    """Whether writes create missing databases and series, and what these look like."""

    #: False: values for series that do not exist are refused.
    is_on: bool = True
    #: A new database has this number of nodes below root.
    database_level: int = 1
    #: The types of new series for values in SQL with and without a decimal point.
    integers: DataType = DataType.DOUBLE
    decimals: DataType = DataType.DOUBLE

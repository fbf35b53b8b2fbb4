"""PEP 249 type objects, to compare with `cursor.description[i][1]`, and constructors of values.

DATETIME  the Time column, TIMESTAMP, DATE           STRING   TEXT, STRING
NUMBER    INT32, INT64, FLOAT, DOUBLE                BINARY   BLOB
BOOLEAN   BOOLEAN                                    ROWID    no type
"""

from __future__ import annotations

import datetime as dt


class TypeObject:
    """A group of data types: equal to the name of each of its types, as PEP 249 requires."""

    def __init__(self, name: str, *type_names: str) -> None:
        self.name = name
        self._type_names = frozenset(type_names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        return other in self._type_names

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"saros.{self.name}"


STRING = TypeObject("STRING", "TEXT", "STRING")
BINARY = TypeObject("BINARY", "BLOB")
NUMBER = TypeObject("NUMBER", "INT32", "INT64", "FLOAT", "DOUBLE")
DATETIME = TypeObject("DATETIME", "TIMESTAMP", "DATE")
BOOLEAN = TypeObject("BOOLEAN", "BOOLEAN")
#: Required by PEP 249. It equals no type name, since a point is identified by series and time.
ROWID = TypeObject("ROWID")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 - PEP 249 gives the name
    """Return the UTC date `ticks` seconds after the epoch."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """Return the UTC time of day `ticks` seconds after the epoch."""
    return TimestampFromTicks(ticks).timetz()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """Return the UTC timestamp `ticks` seconds after the epoch."""
    return dt.datetime.fromtimestamp(ticks, tz=dt.UTC)

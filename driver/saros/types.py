"""PEP 249 type objects and constructors: what `cursor.description[i][1]` is compared with.

TIME      the Time column, TIMESTAMP series          STRING   TEXT, STRING
NUMBER    INT32, INT64, FLOAT, DOUBLE                BINARY   BLOB
BOOLEAN   BOOLEAN                                    DATE     DATE
"""

from __future__ import annotations

import datetime as dt


class TypeObject:
    """Equal to each of the type names it stands for."""

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
#: PEP 249 asks for it; a point is found by series and time, so nothing is ever equal to it.
ROWID = TypeObject("ROWID")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 - PEP 249 gives the name
    """The UTC date `ticks` seconds after the epoch."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """The UTC time of day `ticks` seconds after the epoch."""
    return TimestampFromTicks(ticks).timetz()


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """The UTC moment `ticks` seconds after the epoch."""
    return dt.datetime.fromtimestamp(ticks, tz=dt.UTC)

"""Saros: a time-series database with Apache IoTDB's tree model and SQL, embedded or as a cluster.

A PEP 249 driver. `connect` opens a folder, a server, or a cluster:

    import saros
    with saros.connect("./data") as connection:
        cursor = connection.cursor()
        cursor.execute("select temperature from root.plant.pump1 where time > ?", [start])
        table = cursor.fetch_arrow()

Importing this module is cheap: NumPy, Arrow and the engine are not loaded before `connect` is called.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from saros.api.connection import Connection, connect
from saros.api.cursor import Cursor
from saros.api.prepared import Prepared
from saros.errors import (
    BulkError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PartialWriteError,
    ProgrammingError,
    RowRange,
    Warning,  # noqa: A004 - PEP 249 gives the name
)
from saros.types import (
    BINARY,
    BOOLEAN,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from saros_wire.read_point import ReadPoint

if TYPE_CHECKING:
    from saros import aio as aio

__version__ = "0.2.0"

apilevel = "2.0"
#: Threads may share the module and connections, but not cursors.
threadsafety = 2
paramstyle = "qmark"

__all__ = [
    "BINARY",
    "BOOLEAN",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "BulkError",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PartialWriteError",
    "Prepared",
    "ProgrammingError",
    "ReadPoint",
    "RowRange",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def __getattr__(name: str) -> ModuleType:
    """Load `saros.aio` on first use."""
    if name == "aio":
        return import_module("saros.aio")
    raise AttributeError(f"module 'saros' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "aio"]

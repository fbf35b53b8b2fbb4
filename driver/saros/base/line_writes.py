"""Arguments and outcomes of writes of InfluxDB's line protocol."""

from __future__ import annotations

import time

from saros.errors import InterfaceError, database_error
from saros_wire.line_writes import LinesWritten, LineWrite
from saros_wire.status import ErrorClass, status_of

_LATER = (ErrorClass.OPERATIONAL, ErrorClass.INTERNAL)


def line_write(data: object, database: str, precision: str, template: str | None, time_ns: int | None) -> LineWrite:
    """Convert the arguments of `Connection.write_lines` to a write. Raises InterfaceError."""
    if isinstance(data, str):
        data = data.encode()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InterfaceError(f"lines must be a text or bytes, not {type(data).__name__}: join them with newlines")
    now_ns = time.time_ns() if time_ns is None else time_ns
    return LineWrite(bytes(data), database, precision, now_ns, template or "")


def points_of(written: LinesWritten) -> int:
    """Return the number of points of a write. Raises DatabaseError if lines or values were not written."""
    if not written.codes:
        return written.points
    later = next((code for code in written.codes if status_of(code).error_class in _LATER), None)
    remedy = "" if later is None else "; write all lines again"
    code = written.codes[0] if later is None else later
    noun = "point is" if written.points == 1 else "points are"
    raise database_error(f"{written.points} {noun} written; left out: {written.listed}{remedy}", code)

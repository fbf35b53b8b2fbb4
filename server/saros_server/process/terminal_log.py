"""The log of a command in a terminal: each warning or error is a line on standard error.

    saros: the torn end of the log goes (path data/log/00000000000000000001.log, offset 1234)

As a library, Saros writes no log by itself: each top-level package has a logger with a NullHandler, and the application
configures `logging`.
"""

from __future__ import annotations

import logging
import sys

#: The attributes that every record has. All others come from the caller's `extra`.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return the `extra` fields of a record."""
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class Lines(logging.Formatter):
    """A formatter that writes a record as a line of text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, followed by the traceback of its exception."""
        fields = ", ".join(f"{name} {value}" for name, value in fields_of(record).items())
        line = f"saros: {record.getMessage()}" + (f" ({fields})" if fields else "")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def write_lines() -> None:
    """Send the warnings and errors of all loggers to standard error, unless logging is already configured."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

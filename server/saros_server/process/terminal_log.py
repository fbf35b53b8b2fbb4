"""The log of a command that people run: warnings and errors as lines on standard error, for who looks at a terminal.

    saros: the torn end of the log goes (path data/log/00000000000000000001.log, offset 1234)

A library writes nothing by itself: each room's top logger has a NullHandler, and who embeds Saros decides by `logging`.
"""

from __future__ import annotations

import logging
import sys

#: What every record has; the rest of its fields are the caller's.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """What stands beside a record's event."""
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class Lines(logging.Formatter):
    """See the module."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line; what was raised follows it."""
        fields = ", ".join(f"{name} {value}" for name, value in fields_of(record).items())
        line = f"saros: {record.getMessage()}" + (f" ({fields})" if fields else "")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def write_lines() -> None:
    """Send warnings of all loggers to standard error in this form, unless they go somewhere already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])

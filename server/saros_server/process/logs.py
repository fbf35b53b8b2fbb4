"""The server's log: one JSON object a line, on standard error, where the service manager or `server.log` takes it.

    {"time": "2026-01-01T00:00:00.000Z", "level": "INFO", "logger": "saros_server.server", "event": "serving", ...}

A record's `extra` fields stand beside the event. Values of statements never appear: what is logged of a statement is
its text with `?` for every literal (`shape_of`).
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from saros_grammar.shape import without_values
from saros_server.process.terminal_log import fields_of

#: A statement's text is cut here.
_SHAPE_CHARACTERS = 500


class JsonLines(logging.Formatter):
    """See the module."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        words: dict[str, object] = {
            "time": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1_000:03}Z",
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        words |= fields_of(record)
        if record.exc_info:
            words["exception"] = self.formatException(record.exc_info)
        return json.dumps(words, ensure_ascii=False, default=str)


def write_json_lines(level: str) -> None:
    """Send all loggers' records to standard error in this form. For a process of its own, never for an embedder's."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)


def shape_of(statement: str) -> str:
    """The statement without its literals."""
    text = without_values(statement) or "(unreadable)"
    return text if len(text) <= _SHAPE_CHARACTERS else text[:_SHAPE_CHARACTERS] + "..."
